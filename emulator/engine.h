// The library's front door: play a job, or phase after phase of a workload, here and together with
// the other processes of `control`.
//
// Threading: call from the thread that owns `control`. The observer is called from that thread, on
// process 0 only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/result/result.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"

namespace ghostrank {

struct RunOptions {
  std::vector<Rank> trace_ranks;  // record spans of these ranks; empty: none
  // Where a ledger that outgrows memory goes, with ".N" where there are several; empty:
  // ghostrank-pairs.csv. A phase begins the files of the one before anew.
  std::string spill_path;
  std::size_t max_spans = 1'000'000;
};

// What may be watched while a run goes on.
class Observer {
 public:
  virtual ~Observer() = default;
  // Everything is connected and measured; `result` holds hosts, capacity, dilation. Nothing was
  // sent yet.
  virtual void on_start(const Result& /*result*/) {}
  // So many iterations are played next, `measured` or as a warm-up; there may be several warm-ups.
  virtual void on_play(int /*iterations*/, bool /*measured*/) {}
  // An iteration of the whole job has ended. Warm-up iterations have negative indexes: -1 is the
  // last.
  virtual void on_iteration(int /*index*/, const IterationReport& /*report*/) {}
  // About ten times a second: completed part of the whole run, 0..1, and wall seconds since the
  // start.
  virtual void on_progress(double /*fraction*/, double /*wall_seconds*/) {}
  // `auto` dilation was changed after a warm-up with which the machine did not, or hardly, keep up,
  // or for which it was far slower than it had to be.
  virtual void on_dilation(double /*from*/, double /*to*/, const std::string& /*why*/) {}
};

// What a session plays at one go: warm-up, then iterations that count.
struct Phase {
  int program = kInOrder;  // the program of every role's `iterations`; kInOrder: iteration i plays
                           // its own, as Role says
  int warmup = 0, iterations = 1;
  bool verify = false;     // give ranks real data; needs run.verify
  double min_seconds = 0;  // wall: more iterations, where so many are over sooner; real time only
};

// Throws Error(usage) for a job that so many processes cannot play, before they have met.
void check_processes(const JobSpec& spec, const Workload& workload, int processes);

// A workload and everything that is needed to play it, set up once: all processes have agreed, are
// connected and know what they can carry. Every process plays the same phases.
class Session {
 public:
  // Throws Error for what is wrong before the start. Everything given must outlive the session.
  Session(const LoadedJob& job, const Workload& workload, Control& control,
          const RunOptions& options, Observer& observer);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns what was found, partial when the run was stopped (result.interrupted says why). `auto`
  // dilation is found anew for every phase. On processes other than 0 the result holds local facts
  // only.
  Result play(const Phase& phase);

 private:
  class Play;
  std::unique_ptr<Play> play_;
};

// A session of one phase: run.warmup and run.iterations of the workload, more where run.min_seconds
// says so, verified where run.verify does.
Result run_job(const LoadedJob& job, const Workload& workload, Control& control,
               const RunOptions& options, Observer& observer);

}  // namespace ghostrank
