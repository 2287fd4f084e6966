// What the shards of a process share during one segment: the order to stop, what they mail each
// other, and what the thread that waits for them is told.
//
// Threading: as each member says. Rings have one shard at each end; mail is written by one shard
// before a window's barrier and read by another one behind it.
#pragma once

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/common/moment.h"
#include "emulator/common/spsc.h"
#include "emulator/fabric/fabric.h"
#include "emulator/result/result.h"
#include "emulator/shard/event.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// The iterations between two barriers.
struct Segment {
  std::uint32_t first = 0, count = 1;
  int program = kInOrder;    // of every role; kInOrder: the iterations' own, as Role says
  double dilation = 1;       // scales the lateness statistics to wall time; the clock has its own
  bool verify = false;       // real data, compared at the end of every collective
  std::uint64_t number = 0;  // among those of the run, from 1: packets carry it
};

// The end of one iteration as far as one shard (then one process) sees it; parts are summed.
struct IterationPart {
  std::uint32_t iteration = 0;
  std::uint32_t ranks = 0;
  Moment end;
  Picoseconds compute = 0, exposed = 0, bubble = 0;  // sums over ranks
  Picoseconds lasted = 0;  // sum over ranks, each from its own end of the iteration before
  Picoseconds rank0 = 0;   // the same of rank 0 alone
  Picoseconds earliest = std::numeric_limits<Picoseconds>::max();  // end of the first rank

  void merge(const IterationPart& other) {
    ranks += other.ranks;
    end = later(end, other.end);
    compute += other.compute;
    exposed += other.exposed;
    bubble += other.bubble;
    lasted += other.lasted;
    rank0 += other.rank0;
    earliest = std::min(earliest, other.earliest);
  }
};

struct ShardShared {
  explicit ShardShared(int shards);

  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> steps{0};  // iterations ended by ranks here, for the progress line
  std::mutex mutex;                     // guards the four below
  std::condition_variable changed;      // one of them has, or a shard has ended
  std::vector<IterationPart> parts;
  std::string failure;      // first one wins
  bool of_fabric = false;   // is that failure
  bool of_machine = false;  // or want of memory or threads
  int running = 0;          // shards

  int shards;
  std::barrier<> window;
  std::vector<std::atomic<Picoseconds>> next;            // virtual time: next event of each shard
  std::vector<std::unique_ptr<SpscRing<Parcel>>> rings;  // from * shards + to
  std::vector<std::vector<Parcel>> mail;                 // virtual time: from * shards + to
  struct Quiet {
    bool is = false;
    Picoseconds since = 0;
    std::string stuck;  // who waits for whom
  };
  std::vector<Quiet> quiet;  // by shard, real time only; guarded by `mutex`
  std::vector<std::unique_ptr<std::atomic<bool>>> asleep;
  std::vector<Fabric*> fabrics;  // to wake a neighbour

  // Of jobs with agents, which serve others when their own ranks have ended: shards whose ranks
  // have; notes on their way in this process, packets that are still to leave it among them; notes
  // to and from others, and packets, of which some are lost; whether all is at rest.
  std::atomic<int> ended{0};
  std::atomic<std::int64_t> notes_open{0};
  std::atomic<std::uint64_t> notes_sent{0}, notes_received{0};
  std::atomic<std::uint64_t> packets_sent{0}, packets_received{0};
  std::atomic<bool> at_rest{false};
};

}  // namespace ghostrank
