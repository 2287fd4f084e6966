// Plays segments: spawns the shards' threads, watches them, streams finished iterations, pulses and
// at the end a report to process 0, which ends a job that stands still and lets every process know
// the summary.
//
// Threading: one owner thread, the one that owns `control`; callbacks come from it, on process 0
// only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/assemble/ensemble.h"
#include "emulator/common/blob.h"
#include "emulator/host/counters.h"
#include "emulator/segment.h"

namespace ghostrank {

class Player {
 public:
  struct Callbacks {
    std::function<void(int index, const IterationReport&)>
        iteration;                                    // 0 .. count-1 of the segment, in order
    std::function<void(double iterations)> progress;  // ended by the mean rank of this process
  };

  Player(const JobSpec& spec, const Workload& workload, const Cluster& cluster, Ensemble& ensemble,
         Control& control, std::vector<std::unique_ptr<Shard>> shards);

  // Plays the segment from emulated time 0. Returns the sum of all processes' reports on process 0,
  // elsewhere this one's with the summary of all; when the run was stopped, what this process
  // knows. Trouble of the engine stops the run (see Control::stop_reason).
  SegmentReport play(const Segment& segment, Callbacks callbacks);

  // The reports behind the last sum, by host (process 0).
  const std::vector<SegmentReport>& reports() const { return reports_; }
  // The stalls of the last segment, in order (process 0).
  const std::vector<StallReport>& stalls() const { return stalls_; }
  const std::vector<Schedules::Row>& rows() const { return shards_.front()->rows(); }

 private:
  Clock start_clock();
  void play_shards(ShardShared& shared);
  void let_rest(ShardShared& shared);
  void look(ShardShared& shared, bool ended);
  void let_control_speak() const;
  void publish(const std::vector<IterationPart>& parts);
  void publish_pulse(ShardShared& shared, bool ended);
  bool take_part(BlobReader& blob);
  bool take_pulse(int host, BlobReader& blob);
  void end_a_stall();
  void report_stall(const Gap& gap);
  void take_published();
  SegmentReport report(double cpu_before);
  void send(const SegmentReport& mine);
  void read_reports();
  bool share(SegmentSummary& sum);
  void complete_spills(bool together);
  SegmentReport gather(SegmentReport mine);

  const JobSpec& spec_;
  const Workload& workload_;
  Ensemble& ensemble_;
  Control& control_;
  const int host_;
  const bool virtual_;
  const bool serves_;  // agents, some of which have no program
  const int nics_;     // of the cluster
  std::uint32_t local_ranks_ = 0;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<InterfaceLog> interface_logs_;
  std::vector<SegmentReport> reports_;
  std::vector<std::string> arriving_;  // reports of the others, by host, on process 0
  std::vector<StallReport> stalls_;

  // Of the current segment.
  Segment segment_;
  std::uint64_t played_ = 0;  // segments, ever
  Callbacks callbacks_;
  std::uint32_t reported_ = 0;
  std::map<std::uint32_t, IterationPart> open_parts_;   // of this process
  std::map<std::uint32_t, IterationPart> whole_parts_;  // of the job, on process 0
  std::vector<Picoseconds> ends_;                       // of the job's iterations, on process 0
  Clock clock_ = Clock::virtual_time();
  std::optional<StallWatch> watch_;  // real time, on process 0
  Picoseconds looked_ = 0;           // when it was last asked
  Picoseconds pulsed_ = 0;           // when this process last told how it stands
};

}  // namespace ghostrank
