// State that the shards of a process share during one segment: the order to stop, the mail between
// shards, and what they report to the thread that waits for them.
//
// Threading: as each member says. One shard pushes to a ring and one pops.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/common/moment.h"
#include "emulator/common/spsc.h"
#include "emulator/common/summed_time.h"
#include "emulator/fabric/fabric.h"
#include "emulator/result/result.h"
#include "emulator/shard/events/event.h"
#include "emulator/shard/shared/windows.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// The iterations between two barriers.
struct Segment {
  std::uint32_t first = 0, count = 1;
  int program = kInOrder;  // of every role; kInOrder: each iteration's own, as Role says
  int job = kEveryJob;     // of several jobs: only this one plays
  double dilation = 1;     // scales the lateness statistics to wall time; the clock has its own
  bool verify = false;     // real data, compared at the end of every collective
  bool measured = false;   // no warm-up: events happen, switches and servers fail
  std::uint32_t measured_from = 0;  // number of the first measured iteration
  std::uint64_t number = 0;         // of this segment in the run, from 1; packets carry it
  Picoseconds at = 0;  // time of the network at which it begins, for NICs whose rates change
  std::vector<std::uint32_t> counts = {};  // by job, at most `count`; empty: each plays `count`

  std::uint32_t count_of(std::size_t of_job) const {
    if (job != kEveryJob && static_cast<std::size_t>(job) != of_job) return 0;
    return counts.empty() ? count : counts[of_job];
  }
};

// One iteration, summed over its ranks on one shard, then over those of one process.
struct IterationSums {
  std::uint32_t iteration = 0;
  std::uint32_t ranks = 0;
  std::uint16_t job = 0;
  Moment end;
  SummedTime compute, exposed, bubble;  // over ranks
  SummedTime lasted;                    // over ranks: the time since each rank's own last end
  Picoseconds rank0 = 0;                // duration at rank 0 alone
  Picoseconds earliest = std::numeric_limits<Picoseconds>::max();  // end of the first rank

  void merge(const IterationSums& other) {
    ranks += other.ranks;
    end = later(end, other.end);
    compute.merge(other.compute);
    exposed.merge(other.exposed);
    bubble.merge(other.bubble);
    lasted.merge(other.lasted);
    rank0 += other.rank0;
    earliest = std::min(earliest, other.earliest);
  }
};

class Shard;
struct Crossings;

struct ShardShared {
  explicit ShardShared(int shards);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> ops{0};  // started by ranks here, for the progress line; see kOpsTold
  std::mutex mutex;                   // guards the members from `finished` to `running`
  std::condition_variable changed;    // notified when `finished` grows or a shard ends
  std::vector<IterationSums> finished;  // iterations; the main thread takes them
  std::string failure;                  // of the run; the first one stays
  bool of_fabric = false;               // the fabric caused the failure
  bool of_machine = false;              // a lack of memory or threads caused it
  int running = 0;                      // shards that have not ended

  int shards;
  Windows windows;                                       // of virtual time
  std::vector<Shard*> players;                           // by shard; each enters itself
  std::vector<std::unique_ptr<SpscRing<Parcel>>> rings;  // from * shards + to
  struct Quiet {
    bool is = false;
    Picoseconds since = 0;
    std::string stuck;  // which rank waits for which
  };
  std::vector<Quiet> quiet;  // by shard, real time only; guarded by `mutex`
  std::vector<std::unique_ptr<std::atomic<bool>>> asleep;  // by shard: it blocks or is about to
  std::vector<Fabric*> fabrics;                            // by shard: to wake it
  const Crossings* crossings = nullptr;  // of a slice: what comes to it in the segment

  // For jobs with agents or links, whose shards serve others after their own ranks have ended.
  std::atomic<int> ended{0};  // shards whose ranks have ended
  // Notes under way in this process, including packets that have yet to leave it.
  std::atomic<std::int64_t> notes_open{0};
  // Notes to and from other processes.
  std::atomic<std::uint64_t> notes_sent{0}, notes_received{0};
  // Packets to and from other processes; the network may lose some.
  std::atomic<std::uint64_t> packets_sent{0}, packets_received{0};
  // No rank plays and no note is under way in any process: the shards may end.
  std::atomic<bool> at_rest{false};
};

}  // namespace ghostrank
