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
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/agent.h"
#include "collectives/schedule.h"
#include "collectives/server_placement.h"
#include "emulator/network/topology.h"
#include "emulator/traffic/nccl_node.h"
#include "profiles/job/job.h"

namespace ghostrank {

inline constexpr Host kNoHost{-1};  // of nodes that are not played

struct Location {  // of one party
  Node node;
  Nic nic;  // that of its GPU
  Host host;
  std::int32_t shard = 0;   // engine thread in that process
  std::uint32_t local = 0;  // index among the shard's parties; ranks come before helpers
};

struct Membership {  // of one rank in one kind of group
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t group = kNone;  // index into Workload::groups; kNone: member of none
  GroupRank position = kNoRank;
  bool taken() const { return group != kNone; }
};

// A scheme with agents that serves a communicator.
struct SchemeUse {
  std::uint32_t group = 0;
  std::string_view library, name;
  std::shared_ptr<const Ends> ends;
  std::vector<Helper> helpers;
  WorldParty first_helper;            // the other helpers follow
  std::vector<WorldParty> parties{};  // its communicator's: the ranks, then the helpers
  bool outside = false;               // a switch outside ghostrank plays the helpers
  bool all_functions = false;         // some calls need a switch of ghostrank itself
  int first_slot = 0;                 // of that switch
};

// A worker of a communicator that a switch outside ghostrank serves; it has a flow to the switch.
struct SwitchEnd {
  std::uint32_t scheme = 0;  // index into Cluster::schemes()
  int rail = 0;
  int number = 0;  // among the rail's workers
  GroupRank position = 0;
};

// The source that an error about the algorithm of a group's calls names: that of its name, else of
// the library's, or the job file.
const std::string& source_of_algorithm(const JobSpec& spec, Func func, const std::string& group);

class Cluster {
 public:
  // Throws Error(usage) if a scheme cannot serve a communicator or needs servers that the job
  // lacks, or if the job's network model cannot play what the job sends.
  Cluster(const JobSpec& spec, const Workload& workload, int hosts);

  const Location& location(WorldParty party) const { return locations_[party]; }
  const Membership& membership(WorldRank rank, std::uint16_t kind) const {
    return memberships_[rank.index() * kinds_ + kind];
  }
  const std::vector<WorldRank>& ranks_of(Host host, int shard) const {
    return on_shard(host, shard).ranks;
  }
  const std::vector<WorldParty>& helpers_of(Host host, int shard) const {
    return on_shard(host, shard).helpers;
  }
  // The flows of a shard to a switch outside ghostrank, in the order of their numbers.
  std::vector<SwitchEnd> switch_ends(Host host, int shard) const;
  int parties() const { return locations_.size(); }
  // Whether only some nodes are played (scale.mode: slice); whether `node` is. Ranks of others are
  // on no host.
  bool is_slice() const { return ranks_played_ < workload_.ranks; }
  bool plays(Node node) const { return host_of_node_[node] != kNoHost; }
  int ranks_played() const { return ranks_played_; }
  WorldRank first_played() const { return first_played_; }
  // The first member of a group that is played; kNoRank: none is.
  GroupRank first_played(std::uint32_t group) const { return first_played_of_[group]; }
  PartyKind kind(WorldParty party) const;
  // Whether a switch outside ghostrank plays the party: no process does.
  bool outside(WorldParty party) const {
    return outside_ && topology_.is_switch(location(party).nic);
  }

  // The schemes of all communicators; an index into this list names one scheme of one communicator.
  const std::vector<SchemeUse>& schemes() const { return schemes_; }
  // Index into schemes(); -1: the row has no agents.
  int scheme(std::uint32_t group, const Algorithm& row) const;
  // A communicator's party, numbered over the job.
  static WorldParty world_party(const SchemeUse& use, GroupParty party) {
    return use.parties[static_cast<std::size_t>(party)];
  }

  // The group rank of `rank` in `group`, of which it must be a member.
  GroupRank group_rank(WorldRank rank, std::uint32_t group) const {
    return membership(rank, workload_.groups[group].kind).position;
  }

  const Topology& topology() const { return topology_; }
  // The shard that plays the link; every process computes the same one.
  int shard_of_link(std::uint32_t link) const { return shard_of_link_[link]; }
  int hosts() const { return hosts_; }
  int shards() const { return shards_; }
  int nics() const { return nics_; }
  int nics_per_node() const { return nics_per_node_; }
  Nic nic(Node node, int number) const { return Nic(node.value() * nics_per_node_ + number); }

  // Groups of one layout play the same schedules and, but for the latency of links, take equally
  // long alone. The layout is the size, which members share a node, which share a NIC, the order of
  // their world ranks and, for NCCL, on which GPUs they are.
  std::uint32_t layout(std::uint32_t group) const { return layout_of_[group]; }
  const std::vector<std::int32_t>& nodes_of_layout(std::uint32_t layout) const {
    return layouts_[layout].nodes;
  }
  bool inside_node(std::uint32_t group) const { return layouts_[layout_of_[group]].one_node; }
  // What NCCL has to know of the GPUs of such a group (Communicator::gpu_of). machine(): the node
  // of the GPUs of a kind of group; null if the kind's job plays nothing of NCCL.
  const std::vector<std::int32_t>& gpus_of_layout(std::uint32_t layout) const {
    return layouts_[layout].gpus;
  }
  const std::shared_ptr<const NcclMachine>& machine(std::uint16_t kind) const {
    return nccl_nodes_[job_of_kind(workload_, kind)].machine();
  }
  // The most NICs that one node's members of such a group use; 1 if the group is inside a node.
  int nics_of_layout(std::uint32_t layout) const { return layouts_[layout].nics; }

 private:
  struct GroupLayout {
    std::vector<std::int32_t> nodes;  // by position, in order of appearance from 0
    std::vector<std::int32_t> gpus;   // by position; empty: any
    int nics = 1;
    bool one_node = false;
  };

  // The parties on a shard, in ascending order.
  struct OnShard {
    std::vector<WorldRank> ranks;
    std::vector<WorldParty> helpers;
  };
  const OnShard& on_shard(Host host, int shard) const { return on_shard_[host][shard]; }

  const std::vector<WorldRank>& members_of(std::uint32_t group) const {
    return workload_.groups[group].members;
  }
  void add_schemes(const JobSpec& spec);
  void check_network(const JobSpec& spec) const;
  void add_scheme(const JobSpec& spec, std::uint32_t group, const Algorithm& row);
  void check_switch_knows(const JobSpec& spec, Func func, SchemeUse& use) const;
  Location helper_location(const JobSpec& spec, const SchemeUse& use, std::size_t helper) const;
  ServerLocation server_location(const JobSpec& spec, const SchemeUse& use,
                                 std::size_t helper) const;
  Location switch_location(const JobSpec& spec, const SchemeUse& use, const Helper& helper);
  Location new_switch(Location near);
  Communicator::Switches switches_at(const JobSpec& spec,
                                     const std::vector<WorldRank>& ranks) const;
  void reserve_slots(const JobSpec& spec, SchemeUse& use, Communicator& comm);

  const Workload& workload_;
  std::vector<NcclNodeOfJob> nccl_nodes_;  // by job
  Topology topology_;
  int hosts_, shards_, nics_, nics_per_node_;
  bool outside_;  // schemes use a switch outside ghostrank
  std::size_t kinds_;
  VectorBy<Node, Host> host_of_node_;
  int ranks_played_ = 0;
  WorldRank first_played_;
  std::vector<GroupRank> first_played_of_;  // by group
  VectorBy<Node, std::int32_t> shard_of_node_;
  std::vector<std::int32_t> shard_of_link_;
  VectorBy<WorldParty, Location> locations_;
  std::vector<Membership> memberships_;
  VectorBy<Host, std::vector<OnShard>> on_shard_;  // by host, then shard
  // A switch in the modelled network that communicators share.
  struct SharedSwitch {
    Location location;
    int slots = 0;  // taken
  };
  // By rail, rack (-1: above the racks) and number there.
  std::map<std::tuple<int, int, int>, SharedSwitch> switches_;
  std::vector<SchemeUse> schemes_;
  std::vector<int> helpers_of_job_;  // so far
  // Of a switch outside ghostrank, by NIC of its workers, or link between its leaf and the spine.
  std::map<Nic, int> next_slot_;
  std::map<std::pair<std::uint32_t, std::string_view>, int> scheme_of_;  // group, name of the row
  std::vector<std::uint32_t> layout_of_;
  std::vector<GroupLayout> layouts_;
};

// The NICs through which a message between members of a group leaves its node and enters the other.
// The library may choose NICs for a channel: then the cluster's nearest ones. Else those of the two
// GPUs.
struct NicPair {
  Nic source, target;
  auto operator<=>(const NicPair&) const = default;
};
NicPair nics_of(const Cluster& cluster, const Schedule& schedule,
                const std::vector<WorldRank>& members, GroupRank from, GroupRank to, int channel);

// The number of shards per process that a job uses: at most the emulated nodes of the host with
// fewest; 1 if the network is modelled as flows or packets, or a virtual run has no lookahead.
int usable_shards(const JobSpec& spec, int hosts);

}  // namespace ghostrank
