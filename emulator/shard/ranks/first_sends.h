// The earliest time at which a rank of a shard may send to another shard, from the programs: until
// then other shards need not wait for this one. A rank that has yet to compute for a second before
// its next call with ranks of other shards sends nothing to them in that second, whatever its other
// calls do meanwhile.
//
//   stream 0   F ──── F ──── B ──── B ──── record e
//   stream 1                                   wait e, reduce_scatter with another shard
//              └────────── at least so long ───┘
//
// Bounds: 8 bytes for each op of stream 0 of a program, 16 for each call of it with other shards;
// once for all ranks of a role. Threading: one owner (a shard).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "emulator/shard/ranks/rank.h"
#include "emulator/traffic/cluster.h"
#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

class FirstSends {
 public:
  // Whether programs tell when ranks send: not where agents send, or streams outlive their
  // iteration or have several workers.
  static bool known(const JobSpec& spec, const Workload& workload, const Cluster& cluster);

  // `jitter`: the deviation of compute delays.
  FirstSends(const Workload& workload, const Cluster& cluster, Host host, int shard, double jitter);

  // Whether a call of this communicator (index into Workload::groups) is with other shards, or may
  // cross links that they play.
  bool leaves(std::uint32_t group) const { return leaves_[group]; }
  // first(): before the time returned, no rank starts another such call; Windows::kNever: none
  // does. Times of ranks only grow, so most are not looked at. begin(): at the start of a segment.
  void begin(const std::vector<RankState>& ranks, std::size_t players);
  Picoseconds first(const std::vector<RankState>& ranks);

 private:
  struct Call {
    std::uint32_t at;     // its position in its stream
    std::uint32_t after;  // position in stream 0 of a record that it waits for; 0: of none
  };
  struct Table {
    std::vector<Picoseconds> work;         // of stream 0 before each position, and in all
    std::vector<std::vector<Call>> calls;  // with other shards, by stream, in order
  };

  const Table& table_of(const RankState& r);
  Table make(const Program& program, WorldRank rank) const;
  Picoseconds first_of(const RankState& r);

  const Workload& workload_;
  const Cluster& cluster_;
  const double shortest_;     // least factor that jitter gives a delay
  std::vector<bool> leaves_;  // by group
  // By program and by which of its kinds of groups leave the shard for a rank.
  std::map<std::pair<const Program*, std::vector<bool>>, Table> tables_;
  std::vector<std::pair<const Program*, const Table*>> table_;  // by rank: its last one
  std::priority_queue<std::pair<Picoseconds, std::uint32_t>,
                      std::vector<std::pair<Picoseconds, std::uint32_t>>, std::greater<>>
      first_;  // lower bound, rank
};

}  // namespace ghostrank
