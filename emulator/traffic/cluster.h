// Where everything runs: ranks and the helpers of schemes on emulated nodes and NICs, nodes on real
// hosts and shards; and which communicator a rank means when its program says "dp".
//
// The parties of a job are numbered: first its ranks, then the helpers of every scheme of every
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

struct Location {  // of one party
  std::int32_t node = 0;
  std::int32_t nic = 0;    // node * nics_per_node + the NIC of its GPU
  std::int32_t host = 0;   // process of the job
  std::int32_t shard = 0;  // engine thread in that process
  std::int32_t local = 0;  // index among the shard's parties; ranks come before helpers
};

struct Membership {         // of one rank in one kind of group
  std::int32_t group = -1;  // index into Workload::groups; -1: member of none
  Rank position = kNoRank;
};

// A scheme with agents that serves a communicator.
struct SchemeUse {
  std::uint32_t group = 0;
  std::string_view library, name;
  std::shared_ptr<const Ends> ends;
  std::vector<Helper> helpers;
  Rank first_helper = 0;  // its party number; the other helpers follow
};

class Cluster {
 public:
  // Throws Error(usage) if a scheme cannot serve a communicator or needs servers that the job
  // lacks.
  Cluster(const JobSpec& spec, const Workload& workload, int hosts);

  const Location& location(Rank party) const { return locations_[static_cast<std::size_t>(party)]; }
  const Membership& membership(Rank rank, std::uint16_t kind) const {
    return memberships_[static_cast<std::size_t>(rank) * kinds_ + kind];
  }
  const std::vector<Rank>& ranks_of(int host, int shard) const {
    return ranks_[static_cast<std::size_t>(host * shards_ + shard)];
  }
  // The helpers on a shard, by party number.
  const std::vector<Rank>& helpers_of(int host, int shard) const {
    return helpers_[static_cast<std::size_t>(host * shards_ + shard)];
  }
  int parties() const { return static_cast<int>(locations_.size()); }
  PartyKind kind(Rank party) const;

  // The schemes of all communicators; an index into this list names one scheme of one communicator.
  const std::vector<SchemeUse>& schemes() const { return schemes_; }
  // Index into schemes(); -1: the row has no agents.
  int scheme(std::uint32_t group, const Algorithm& row) const;
  // The party number of a communicator's party.
  Rank party(const SchemeUse& use, Party position) const {
    const int size = use.ends->size();
    return position < size ? members_of(use.group)[static_cast<std::size_t>(position)]
                           : use.first_helper + position - size;
  }

  // The position of `rank` in `group`, of which it must be a member.
  Party position(Rank rank, std::uint32_t group) const {
    return membership(rank, workload_.groups[group].kind).position;
  }

  const Topology& topology() const { return topology_; }
  // The shard that plays the link; every process computes the same one.
  int shard_of_link(std::uint32_t link) const { return shard_of_link_[link]; }
  int hosts() const { return hosts_; }
  int shards() const { return shards_; }
  int nics() const { return nics_; }
  int nics_per_node() const { return nics_per_node_; }

  // Groups of one layout play the same schedules. The layout is the size, which members share a
  // node, and how many NICs one node's members use.
  std::uint32_t layout(std::uint32_t group) const { return layout_of_[group]; }
  const std::vector<std::int32_t>& nodes_of_layout(std::uint32_t layout) const {
    return layouts_[layout].nodes;
  }
  bool inside_node(std::uint32_t group) const { return layouts_[layout_of_[group]].one_node; }
  // The most NICs that one node's members of such a group use; 1 if the group is inside a node.
  int nics_of_layout(std::uint32_t layout) const { return layouts_[layout].nics; }

 private:
  struct GroupLayout {
    std::vector<std::int32_t> nodes;  // by position, in order of appearance from 0
    int nics = 1;
    bool one_node = false;
  };

  const std::vector<Rank>& members_of(std::uint32_t group) const {
    return workload_.groups[group].members;
  }
  void add_schemes(const JobSpec& spec);
  void add_scheme(const JobSpec& spec, std::uint32_t group, const Algorithm& row);
  Location helper_location(const JobSpec& spec, const SchemeUse& use, std::size_t helper) const;
  Location add_switch(const SchemeUse& use);

  const Workload& workload_;
  Topology topology_;
  int hosts_, shards_, nics_, nics_per_node_;
  std::size_t kinds_;
  std::vector<std::int32_t> host_of_node_, shard_of_node_, shard_of_link_;
  std::vector<Location> locations_;
  std::vector<Membership> memberships_;
  std::vector<std::vector<Rank>> ranks_, helpers_;  // by host and shard
  std::vector<SchemeUse> schemes_;
  std::map<std::pair<std::uint32_t, std::string_view>, int> scheme_of_;  // group, name of the row
  std::vector<std::uint32_t> layout_of_;
  std::vector<GroupLayout> layouts_;
};

// The NICs through which a message between members of a group leaves its node and enters the other.
// The library may choose NICs for a channel: then the cluster's nearest ones. Else those of the two
// GPUs.
struct NicPair {
  std::int32_t source = 0, target = 0;  // numbered over the whole cluster
  auto operator<=>(const NicPair&) const = default;
};
NicPair nics_of(const Cluster& cluster, const Schedule& schedule, const std::vector<Rank>& members,
                Rank from, Rank to, int channel);

// The number of shards per process that a job uses: at most the number of emulated nodes of any
// host; 1 for a virtual run without latency between nodes, which has no lookahead.
int usable_shards(const JobSpec& spec, int hosts);

}  // namespace ghostrank
