// Plays segments: spawns the shards' threads, watches them, streams finished iterations to process
// 0, and lets every process know every process's report.
//
// Threading: one owner thread, the one that owns `control`; callbacks come from it, on process 0
// only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "emulator/ensemble.h"
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

  // Plays iterations [first, first + count) from emulated time 0 and returns the sum of all
  // processes' reports; when the run was stopped, what this process knows.
  SegmentReport segment(int first, int count, double dilation, Callbacks callbacks);

  // The reports behind the last sum, by host.
  const std::vector<SegmentReport>& reports() const { return reports_; }
  const std::vector<Schedules::Row>& rows() const { return shards_.front()->rows(); }

 private:
  Clock start_clock(double dilation);
  void play_shards(const Clock& clock, double dilation, ShardShared& shared);
  void look(ShardShared& shared);
  void publish(const std::vector<IterationPart>& parts);
  void take_published();
  SegmentReport gather(const SegmentReport& mine);

  const JobSpec& spec_;
  const Workload& workload_;
  Ensemble& ensemble_;
  Control& control_;
  const int host_;
  std::uint32_t local_ranks_ = 0;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<SegmentReport> reports_;

  // Of the current segment.
  Callbacks callbacks_;
  std::uint32_t first_ = 0, count_ = 0, reported_ = 0;
  std::map<std::uint32_t, IterationPart> open_parts_;   // of this process
  std::map<std::uint32_t, IterationPart> whole_parts_;  // of the job, on process 0
  Moment previous_end_;
};

}  // namespace ghostrank
