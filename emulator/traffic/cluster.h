// Where everything is: ranks and the helpers of schemes on emulated nodes and NICs, nodes on real
// hosts and shards, and which communicator a rank means when its program says "dp".
//
// Parties of the job are numbered: its ranks, then the helpers of every scheme of every
// communicator.
//
// Threading: immutable after construction; shared by all shards.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/agent.h"
#include "collectives/schedule.h"
#include "emulator/network/topology.h"
#include "profiles/job/job.h"

namespace ghostrank {

struct Place {  // of one party
  std::int32_t node = 0;
  std::int32_t nic = 0;    // node * nics_per_node + the NIC of its GPU
  std::int32_t host = 0;   // process of the job
  std::int32_t shard = 0;  // engine thread in that process
  std::int32_t local = 0;  // index among the parties of that shard, its ranks before helpers
};

struct Seat {               // of one rank in one kind of group
  std::int32_t group = -1;  // index into Workload::groups; -1: not a member of any
  Rank position = kNoRank;
};

// A scheme with agents that serves a communicator.
struct SchemeUse {
  std::uint32_t group = 0;
  std::string_view library, name;
  std::shared_ptr<const Ends> ends;
  std::vector<Helper> helpers;
  Rank first_helper = 0;  // of all parties of the job; the others follow
};

class Cluster {
 public:
  // Throws Error(usage): a scheme cannot serve a communicator, or needs servers that are not there.
  Cluster(const JobSpec& spec, const Workload& workload, int hosts);

  const Place& place(Rank party) const { return places_[static_cast<std::size_t>(party)]; }
  const Seat& seat(Rank rank, std::uint16_t kind) const {
    return seats_[static_cast<std::size_t>(rank) * kinds_ + kind];
  }
  const std::vector<Rank>& ranks_of(int host, int shard) const {
    return ranks_[static_cast<std::size_t>(host * shards_ + shard)];
  }
  // Helpers, by number among all parties.
  const std::vector<Rank>& helpers_of(int host, int shard) const {
    return helpers_[static_cast<std::size_t>(host * shards_ + shard)];
  }
  int parties() const { return static_cast<int>(places_.size()); }
  PartyKind kind(Rank party) const;

  // Of all communicators; an index into it names one scheme of one communicator.
  const std::vector<SchemeUse>& schemes() const { return schemes_; }
  // -1: the row has no agents.
  int scheme(std::uint32_t group, const Algorithm& row) const;
  // Which of the job's parties a communicator's party is.
  Rank party(const SchemeUse& use, Party position) const {
    const int size = use.ends->size();
    return position < size ? members_of(use.group)[static_cast<std::size_t>(position)]
                           : use.first_helper + position - size;
  }

  // Of a rank that is a member of the group.
  Party position(Rank rank, std::uint32_t group) const {
    return seat(rank, workload_.groups[group].kind).position;
  }

  const Topology& topology() const { return topology_; }
  // Which plays the link, in every process alike.
  int shard_of_link(std::uint32_t link) const { return shard_of_link_[link]; }
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

  const std::vector<Rank>& members_of(std::uint32_t group) const {
    return workload_.groups[group].members;
  }
  void add_schemes(const JobSpec& spec);
  void add_scheme(const JobSpec& spec, std::uint32_t group, const Algorithm& row);
  Place place_of(const JobSpec& spec, const SchemeUse& use, std::size_t helper) const;
  Place add_switch(const SchemeUse& use);

  const Workload& workload_;
  Topology topology_;
  int hosts_, shards_, nics_, nics_per_node_;
  std::size_t kinds_;
  std::vector<std::int32_t> host_of_node_, shard_of_node_, shard_of_link_;
  std::vector<Place> places_;
  std::vector<Seat> seats_;
  std::vector<std::vector<Rank>> ranks_, helpers_;  // by host and shard
  std::vector<SchemeUse> schemes_;
  std::map<std::pair<std::uint32_t, std::string_view>, int> scheme_of_;  // group, name of the row
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
