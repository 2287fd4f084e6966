#include "emulator/shard/ranks/leaving_groups.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace ghostrank {
namespace {

constexpr std::uint64_t kMostPaths = 1'000'000;  // that are looked at, in all

// Whether links of other shards lie between leaves.
class LinksBetween {
 public:
  LinksBetween(const Cluster& cluster, int shard) : cluster_(cluster), shard_(shard) {}

  bool leave(const std::vector<std::uint32_t>& leaves) {
    const auto [at, fresh] = of_leaves_.try_emplace(leaves);
    if (fresh) at->second = look_at_all(leaves);
    return at->second;
  }

 private:
  bool look_at_all(const std::vector<std::uint32_t>& leaves) {
    for (const std::uint32_t from : leaves)
      for (const std::uint32_t to : leaves)
        if (from != to && leave(from, to)) return true;
    return false;
  }
  bool leave(std::uint32_t from, std::uint32_t to) {
    const auto [at, fresh] = of_pair_.try_emplace({from, to});
    if (fresh) at->second = look_at(from, to);
    return at->second;
  }
  bool look_at(std::uint32_t from, std::uint32_t to) {
    const SwitchRoutes& routes = cluster_.topology().routes();
    const std::uint32_t paths = routes.paths(from, to);
    if ((looked_at_ += paths) > kMostPaths) return true;
    for (std::uint32_t number = 0; number < paths; ++number) {
      const Path path = routes.path(from, to, number);
      if (std::any_of(
              path.link.begin(), path.link.begin() + path.links,
              [this](std::uint32_t link) { return cluster_.shard_of_link(link) != shard_; }))
        return true;
    }
    return false;
  }

  const Cluster& cluster_;
  int shard_;
  std::map<std::vector<std::uint32_t>, bool> of_leaves_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> of_pair_;
  std::uint64_t looked_at_ = 0;
};

// The leaves of all NICs of the members' nodes, since a library may choose any.
std::vector<std::uint32_t> leaves_of(const Group& group, const Cluster& cluster) {
  std::set<Node> nodes;
  for (const WorldRank rank : group.members) nodes.insert(cluster.location(rank).node);
  std::set<std::uint32_t> leaves;
  for (const Node node : nodes)
    for (int nic = 0; nic < cluster.nics_per_node(); ++nic)
      leaves.insert(cluster.topology().leaf_of(cluster.nic(node, nic)));
  return {leaves.begin(), leaves.end()};
}

}  // namespace

std::vector<bool> leaving_groups(const Workload& workload, const Cluster& cluster, Host host,
                                 int shard) {
  const auto elsewhere = [&](WorldRank rank) {
    const Location& at = cluster.location(rank);
    return at.host != host || at.shard != shard;
  };
  const bool links = cluster.topology().links() > 0;
  LinksBetween between(cluster, shard);
  std::vector<bool> leaving;
  for (const Group& group : workload.groups) {
    const auto& members = group.members;
    leaving.push_back(std::any_of(members.begin(), members.end(), elsewhere) ||
                      (links && members.size() > 1 && between.leave(leaves_of(group, cluster))));
  }
  return leaving;
}

}  // namespace ghostrank
