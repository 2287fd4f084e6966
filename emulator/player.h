// Plays segments: spawns the shards' threads and watches them. Every process streams its finished
// iterations and pulses to process 0, and a report at the end. Process 0 ends a job that stands
// still and gives every process the summary.
//
// Errors: trouble of the engine stops the run through `control`. Threading: one owner thread, the
// one that owns `control`; callbacks come from it, on process 0 only.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emulator/adapt/step_chooser.h"
#include "emulator/assemble/ensemble.h"
#include "emulator/common/blob.h"
#include "emulator/host/counters.h"
#include "emulator/segment.h"

namespace ghostrank {

class Outside;  // emulator/slice/outside.h

class Player {
 public:
  struct Callbacks {
    // Called with the index in the job's segment, 0 .. count-1, in order.
    std::function<void(std::size_t job, int index, const IterationReport&)> iteration;
    // Called with the iterations of the segment that this process's ranks have played: the share of
    // their ops that have started, times the iterations.
    std::function<void(double iterations)> progress;
  };

  Player(const JobSpec& spec, const Workload& workload, const Cluster& cluster, Ensemble& ensemble,
         Control& control, std::vector<std::unique_ptr<Shard>> shards);

  // From then on `chooser` decides which program each iteration plays, and each iteration is a
  // segment of its own; null: the workload decides.
  void choose_with(StepChooser* chooser) { chooser_ = chooser; }
  // Before every segment `outside`, which outlives this, plays the rest of the cluster; null: all
  // of it is played here.
  void play_beside(Outside* outside) { outside_ = outside; }
  // Plays the segment from emulated time 0. Returns the sum of all processes' reports on process 0,
  // elsewhere this process's report with the summary of all. If the run was stopped, returns what
  // this process knows. Trouble of the engine stops the run (see Control::stop_reason).
  SegmentReport play(const Segment& segment, Callbacks callbacks);

  // How many iterations the next part of a segment has, after `played` of them whose last ended at
  // `end`; 0: it is over. Must return the same on every process.
  using NextPart = std::function<std::uint32_t(std::uint32_t played, Picoseconds end)>;
  // The same for a segment whose number of iterations is found meanwhile: plays it in parts,
  // between which everything is at rest. Sets its count to what was begun.
  SegmentReport play_parts(Segment& segment, const NextPart& next, const Callbacks& callbacks);

  // The reports behind the last sum, by host; process 0 only.
  const std::vector<SegmentReport>& reports() const { return reports_; }
  // Processes whose reports that sum lacks, because the run was stopped; process 0 only.
  const std::set<Host>& missing() const { return missing_; }
  // The stalls of the last segment, in order; process 0 only.
  const std::vector<StallReport>& stalls() const { return stalls_; }
  const std::vector<Schedules::Row>& rows() const { return shards_.front()->rows(); }

 private:
  SegmentReport play_whole(const Segment& segment, Callbacks callbacks);
  const struct Crossings* play_outside();
  double seconds_of_calls(const SegmentReport& sum, Func func) const;
  struct JobSums {
    std::map<std::uint32_t, IterationSums> open;   // sums over this process
    std::map<std::uint32_t, IterationSums> whole;  // sums over the job, process 0 only
    // Of its iterations; steps and late in seconds; process 0 only.
    std::vector<Moment> ends;
    std::vector<double> steps, late;
  };

  Clock start_clock();
  std::chrono::nanoseconds until_killed() const;
  void die_if_killed() const;
  void play_shards(ShardShared& shared);
  void let_rest(ShardShared& shared);
  void look(ShardShared& shared, bool ended);
  void let_control_speak() const;
  void publish(const std::vector<IterationSums>& finished);
  double ops_of(const Segment& segment) const;
  void publish_pulse(ShardShared& shared, bool ended);
  bool take_iteration(BlobReader& blob);
  void report_iterations(std::size_t job);
  const JobSums& first_job() const;
  bool all_reported() const;
  bool take_pulse(Host host, BlobReader& blob);
  void end_a_stall();
  void report_stall(const Gap& gap);
  void take_published();
  SegmentReport report(double cpu_before);
  void send(const SegmentReport& mine);
  void await_reports();
  void read_reports(bool whole);
  bool share(SegmentSummary& sum);
  void complete_spills(bool together);
  SegmentReport gather(SegmentReport mine);

  const JobSpec& spec_;
  const Workload& workload_;
  Ensemble& ensemble_;
  Control& control_;
  const Host host_;
  const bool virtual_;
  const bool serves_;  // the job has agents, and a process of agents alone may have no program
  const Cluster& cluster_;
  const Picoseconds killed_at_;               // of the measured iterations, by an event
  std::vector<std::uint32_t> local_ranks_;    // by job; a slice's outside ends as one more
  std::vector<std::uint32_t> ranks_of_role_;  // in this process
  double ops_ = 0;                            // of the segment, in this process
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<InterfaceLog> interface_logs_;
  std::vector<SegmentReport> reports_;
  struct Arriving {
    std::string pieces;
    bool whole = false;
  };
  std::vector<Arriving> arriving_;  // others' reports, by host; on process 0
  std::set<Host> missing_;
  std::vector<StallReport> stalls_;
  StepChooser* chooser_ = nullptr;
  Outside* outside_ = nullptr;

  // State of the current segment.
  Segment segment_;
  std::uint64_t played_ = 0;  // segments so far
  Callbacks callbacks_;
  std::vector<JobSums> jobs_;
  std::int64_t began_ns_ = 0;
  std::optional<double> throttled_before_;
  std::uint64_t strays_told_ = 0;  // of the fabrics, in reports of earlier segments
  Clock clock_ = Clock::virtual_time();
  std::optional<StallWatch> watch_;  // real time, process 0 only
  Picoseconds looked_ = 0;           // when process 0 last asked watch_
  Picoseconds pulsed_ = 0;           // when this process last published a pulse
};

}  // namespace ghostrank
