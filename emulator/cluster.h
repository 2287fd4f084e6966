// Where everything is: ranks on emulated nodes and NICs, nodes on real hosts and shards, and which
// communicator a rank means when its program says "dp".
//
// Threading: immutable after construction; shared by all shards.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule.h"
#include "profiles/job.h"

namespace ghostrank {

struct Place {  // of one rank
  std::int32_t node = 0;
  std::int32_t nic = 0;    // node * nics_per_node + the NIC of its GPU
  std::int32_t host = 0;   // process of the job
  std::int32_t shard = 0;  // engine thread in that process
  std::int32_t local = 0;  // index among the ranks of that shard
};

struct Seat {               // of one rank in one kind of group
  std::int32_t group = -1;  // index into Workload::groups; -1: not a member of any
  Rank position = kNoRank;
};

class Cluster {
 public:
  Cluster(const JobSpec& spec, const Workload& workload, int hosts);

  const Place& place(Rank rank) const { return places_[static_cast<std::size_t>(rank)]; }
  const Seat& seat(Rank rank, std::uint16_t kind) const {
    return seats_[static_cast<std::size_t>(rank) * kinds_ + kind];
  }
  const std::vector<Rank>& ranks_of(int host, int shard) const {
    return ranks_[static_cast<std::size_t>(host * shards_ + shard)];
  }
  int hosts() const { return hosts_; }
  int shards() const { return shards_; }
  int nics() const { return nics_; }
  int nics_per_node() const { return nics_per_node_; }

  // Groups of one shape (size, and which members share a node) play the same schedules.
  std::uint32_t shape(std::uint32_t group) const { return shape_of_[group]; }
  const std::vector<std::int32_t>& nodes_of_shape(std::uint32_t shape) const {
    return shapes_[shape].nodes;
  }
  bool inside_node(std::uint32_t group) const { return shapes_[shape_of_[group]].one_node; }
  // NICs that one node's members of such a group use together, at most.
  int nics_of_shape(std::uint32_t shape) const { return shapes_[shape].nics; }

 private:
  struct Shape {
    std::vector<std::int32_t> nodes;  // by position, numbered from 0 in order of appearance
    int nics = 1;
    bool one_node = false;
  };

  int hosts_, shards_, nics_, nics_per_node_;
  std::size_t kinds_;
  std::vector<Place> places_;
  std::vector<Seat> seats_;
  std::vector<std::vector<Rank>> ranks_;
  std::vector<std::uint32_t> shape_of_;
  std::vector<Shape> shapes_;
};

// The NICs by which a message between members of a group leaves one node and comes into another:
// those that the library chose for the channel, as near as the cluster has them, or those of the
// two GPUs.
struct NicPair {
  std::int32_t source = 0, target = 0;  // of the whole cluster
  auto operator<=>(const NicPair&) const = default;
};
NicPair nics_of(const Cluster& cluster, const Schedule& schedule, const std::vector<Rank>& members,
                Rank from, Rank to, int channel);

// Shards that a job really uses: at most one per emulated node of any host, and one where a virtual
// run has no latency between nodes to look ahead by.
int usable_shards(const JobSpec& spec, int hosts);

}  // namespace ghostrank
