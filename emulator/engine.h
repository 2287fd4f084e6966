// The library's front door: plays a job, or a workload phase by phase, together with the other
// processes of `control`.
//
// Errors: Error with its kind, thrown before the start; afterwards Result::interrupted says why a
// run ended. Threading: call from the thread that owns `control`. The observer is called from that
// thread, on process 0 only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/adapt/step_chooser.h"
#include "emulator/control/control.h"
#include "emulator/packets/network_switch.h"
#include "emulator/result/result.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"

namespace ghostrank {

struct RunOptions {
  std::vector<WorldRank> trace_ranks;  // record spans of these ranks; empty: none
  // File for a ledger that outgrows memory; a job of several shards appends ".N" for shard N.
  // Empty: ghostrank-pairs.csv. Each phase overwrites the files of the phase before.
  std::string spill_path;
  std::size_t max_spans = 1'000'000;
  bool link_times = false;  // fill Result::link_history, in one process
  // The switch outside ghostrank that must learn of the job, on process 0. Else null.
  NetworkSwitch* network_switch = nullptr;
};

// Callbacks during a run.
class Observer {
 public:
  virtual ~Observer() = default;
  // All processes are connected and measured; `result` holds hosts, capacity and dilation. Nothing
  // was sent yet.
  virtual void on_start(const Result& /*result*/) {}
  // The engine starts to play `iterations` iterations, `measured` or as a warm-up; a run may have
  // several warm-ups. 0: their number is open.
  virtual void on_play(int /*iterations*/, bool /*measured*/) {}
  // All ranks of the job have ended an iteration. Warm-up iterations have negative indexes: -1 is
  // the last one.
  virtual void on_iteration(int /*index*/, const IterationReport& /*report*/) {}
  // Of a run with an open end, after each measured iteration: half of the 95 % interval of the mean
  // step, as a share of the mean.
  virtual void on_precision(double /*half_width*/) {}
  // About ten times a second: the completed part of the phase, 0..1, and wall seconds since its
  // first warm-up started.
  virtual void on_progress(double /*fraction*/, double /*wall_seconds*/) {}
  // `auto` changed the dilation, or found none that is faithful: the machine hardly kept up, had
  // much to spare, or slowing down did not help; `why` says which. `from` may equal `to`.
  virtual void on_dilation(double /*from*/, double /*to*/, const std::string& /*why*/) {}
};

// What a session plays in one call: a warm-up, then measured iterations.
struct Phase {
  // Index into every role's `iterations`; kInOrder: iteration i plays its own program (see Role).
  int program = kInOrder;
  int warmup = 0, iterations = 1;
  bool verify = false;  // ranks hold real data; needs run.verify
  // The measured iterations take at least this many wall seconds: more of them are played if
  // `iterations` end sooner. Real time only.
  double min_seconds = 0;
  // Open: `iterations` are the fewest, and this says when they end.
  RunEnd end = {};
  int job = kEveryJob;  // of several jobs: only this one plays
  // By job: how many measured iterations it plays; empty: `iterations` each.
  std::vector<std::uint32_t> of_job = {};
  // Not null: writes `program` before every iteration, and outlives the phase.
  StepChooser* chooser = nullptr;
};

// A workload with everything that playing it needs, set up once: all processes have agreed on the
// job, are connected and have measured what they can carry. Every process plays the same phases.
class Session {
 public:
  // Throws Error for anything that prevents the start. All arguments but `options` must outlive it.
  Session(const LoadedJob& job, const Workload& workload, Control& control,
          const RunOptions& options, Observer& observer);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns the result, a partial one if the run was stopped (result.interrupted says why). Each
  // phase finds its `auto` dilation anew. On processes other than 0 the result holds local facts
  // only.
  Result play(const Phase& phase);

 private:
  class Play;
  std::unique_ptr<Play> play_;
};

// A session of one phase: run.warmup and run.iterations of the workload, more iterations if
// run.min_seconds, run.duration or run.until asks for them, verified if run.verify is set.
Result run_job(const LoadedJob& job, const Workload& workload, Control& control,
               const RunOptions& options, Observer& observer);

}  // namespace ghostrank
