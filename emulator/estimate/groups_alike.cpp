#include "emulator/estimate/groups_alike.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ghostrank {
namespace {

// Whether groups of the name make calls within every pass of a micro-batch.
bool calls_in_passes(const std::string& name) {
  return name == "tp" || name == "cp" || name == "ep" || name == "etp" || name == "tp_ep";
}

}  // namespace

GroupsAlike::GroupsAlike(const JobSpec& spec, const Workload& workload)
    : spec_(spec), workload_(workload), kinds_(workload.group_names.size()) {
  group_of_.assign(static_cast<std::size_t>(workload.ranks) * kinds_, kNone);
  for (std::uint32_t g = 0; g < workload.groups.size(); ++g)
    for (const WorldRank rank : workload.groups[g].members)
      group_of_[rank.index() * kinds_ + workload.groups[g].kind] = g;
  for (std::uint16_t kind = 0; kind < kinds_; ++kind)
    in_passes_.push_back(calls_in_passes(own_name(workload, kind)));
}

std::vector<std::uint32_t> GroupsAlike::alike(std::uint32_t group) const {
  std::vector<std::uint32_t> out{group};
  const std::vector<WorldRank>& members = workload_.groups[group].members;
  const auto same_role = [&](WorldRank a, WorldRank b) {
    return workload_.role_of[a] == workload_.role_of[b];
  };
  for (std::uint32_t g = 0; g < workload_.groups.size(); ++g) {
    const Group& other = workload_.groups[g];
    if (g != group && other.kind == workload_.groups[group].kind &&
        std::equal(members.begin(), members.end(), other.members.begin(), other.members.end(),
                   same_role))
      out.push_back(g);
  }
  return out;
}

std::vector<std::uint32_t> GroupsAlike::placed_differently(
    const std::vector<std::uint32_t>& groups) const {
  std::set<std::vector<int>> seen;
  std::vector<std::uint32_t> out;
  for (const std::uint32_t g : groups) {
    std::map<int, int> numbers;  // of nodes, as they come
    std::vector<int> placement;
    for (const WorldRank rank : workload_.groups[g].members)
      placement.push_back(
          numbers.try_emplace(node_of(rank), static_cast<int>(numbers.size())).first->second);
    if (seen.insert(std::move(placement)).second) out.push_back(g);
  }
  return out;
}

std::vector<std::uint32_t> GroupsAlike::sharing_nics(std::vector<std::uint32_t> groups,
                                                     std::uint32_t group) const {
  if (spec_.cluster.nics_per_node >= spec_.cluster.gpus_per_node) return {};
  std::set<int> nodes;
  for (const WorldRank rank : workload_.groups[group].members) nodes.insert(node_of(rank));
  if (nodes.size() == 1) return {};
  std::erase_if(groups, [&](std::uint32_t g) {
    const std::vector<WorldRank>& members = workload_.groups[g].members;
    return g == group || std::none_of(members.begin(), members.end(), [&](WorldRank rank) {
             return nodes.contains(node_of(rank));
           });
  });
  return groups;
}

std::vector<std::uint32_t> GroupsAlike::in_step(std::uint32_t group) const {
  const std::uint16_t kind = workload_.groups[group].kind;
  std::vector<std::uint32_t> out{group};
  std::set<std::uint32_t> seen{group};
  for (std::size_t i = 0; i < out.size(); ++i)
    for (const WorldRank rank : workload_.groups[out[i]].members)
      for (std::uint16_t other = 0; other < kinds_; ++other) {
        const std::uint32_t with = group_of(rank, other);
        if (with == kNone || other == kind || !in_passes_[other]) continue;
        for (const WorldRank beside : workload_.groups[with].members) {
          const std::uint32_t theirs = group_of(beside, kind);
          if (theirs != kNone && seen.insert(theirs).second) out.push_back(theirs);
        }
      }
  return out;
}

}  // namespace ghostrank
