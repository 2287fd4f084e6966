// Communicators that make the same calls as one of their kind, as those of other replicas do, and
// which of them share its NICs or wait for it. The group that is asked for comes first.
//
// Threading: immutable after construction. `spec` and `workload` must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

class GroupsAlike {
 public:
  GroupsAlike(const JobSpec& spec, const Workload& workload);

  // The group and those of its kind whose members have the same roles.
  std::vector<std::uint32_t> alike(std::uint32_t group) const;
  // Of groups that are alike, one for each way in which members are together on nodes.
  std::vector<std::uint32_t> placed_differently(const std::vector<std::uint32_t>& groups) const;
  // Of groups that are alike, those that have members on the nodes of `group`, without it. None
  // where every GPU has a NIC of its own, or the group's messages stay inside a node.
  std::vector<std::uint32_t> sharing_nics(std::vector<std::uint32_t> groups,
                                          std::uint32_t group) const;
  // The group and those of its kind whose ranks make every pass together with its own, as in tensor
  // parallelism.
  std::vector<std::uint32_t> in_step(std::uint32_t group) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  int node_of(WorldRank rank) const { return rank.value() / spec_.cluster.gpus_per_node; }
  std::uint32_t group_of(WorldRank rank, std::uint16_t kind) const {
    return group_of_[rank.index() * kinds_ + kind];
  }

  const JobSpec& spec_;
  const Workload& workload_;
  const std::size_t kinds_;
  std::vector<std::uint32_t> group_of_;  // by rank and kind; kNone: the rank is in none
  std::vector<bool> in_passes_;          // by kind: its groups make calls within every pass
};

}  // namespace ghostrank
