#include "emulator/cluster.h"

#include <algorithm>
#include <map>
#include <set>

#include "emulator/host_facts.h"
#include "emulator/traffic.h"

namespace ghostrank {
namespace {

// Threads that `run.shards: auto` takes; each more has less of the work, and more to hand over.
constexpr int kMostByAuto = 4;

}  // namespace

std::vector<int> place_nodes(const JobSpec& spec, int processes) {
  if (processes > 1 && !spec.placement.host_of_node.empty()) return spec.placement.host_of_node;
  const int nodes = spec.cluster.all_nodes();
  std::vector<int> host(static_cast<std::size_t>(nodes));
  for (int n = 0; n < nodes; ++n) {
    const auto blocked = static_cast<int>(static_cast<std::int64_t>(n) * processes / nodes);
    host[static_cast<std::size_t>(n)] = spec.placement.cyclic ? n % processes : blocked;
  }
  return host;
}

int usable_shards(const JobSpec& spec, int hosts) {
  if (spec.fabric.kind == FabricKind::virtual_time && spec.cluster.nic.latency <= 0) return 1;
  const bool alone = spec.fabric.kind == FabricKind::memory && hosts == 1;
  const int wanted = spec.run.shards > 0 ? spec.run.shards
                     : alone             ? std::min(usable_cores(), kMostByAuto)
                                         : 1;
  std::vector<int> nodes(static_cast<std::size_t>(hosts));
  for (const int host : place_nodes(spec, hosts)) ++nodes[static_cast<std::size_t>(host)];
  return std::max(1, std::min(wanted, *std::min_element(nodes.begin(), nodes.end())));
}

Cluster::Cluster(const JobSpec& spec, const Workload& workload, int hosts)
    : hosts_(hosts),
      shards_(usable_shards(spec, hosts)),
      nics_(spec.cluster.all_nodes() * spec.cluster.nics_per_node),
      nics_per_node_(spec.cluster.nics_per_node),
      kinds_(workload.group_names.size()) {
  const std::vector<int> host_of_node = place_nodes(spec, hosts);
  std::vector<int> nodes_on(static_cast<std::size_t>(hosts));
  std::vector<int> node_on_host;  // a node's number among those of its host
  for (int host : host_of_node) node_on_host.push_back(nodes_on[static_cast<std::size_t>(host)]++);

  ranks_.resize(static_cast<std::size_t>(hosts * shards_));
  const int gpus = spec.cluster.gpus_per_node;
  for (Rank rank = 0; rank < workload.ranks; ++rank) {
    Place p;
    p.node = rank / gpus;
    const auto node = static_cast<std::size_t>(p.node);
    p.nic = p.node * spec.cluster.nics_per_node + rank % gpus * spec.cluster.nics_per_node / gpus;
    p.host = host_of_node[node];
    p.shard = static_cast<std::int32_t>(static_cast<std::int64_t>(node_on_host[node]) * shards_ /
                                        nodes_on[static_cast<std::size_t>(p.host)]);
    auto& mates = ranks_[static_cast<std::size_t>(p.host * shards_ + p.shard)];
    p.local = static_cast<std::int32_t>(mates.size());
    mates.push_back(rank);
    places_.push_back(p);
  }

  seats_.resize(places_.size() * kinds_);
  std::map<std::vector<std::int32_t>, std::uint32_t> known;  // nodes and NIC offsets -> shape
  for (std::uint32_t g = 0; g < workload.groups.size(); ++g) {
    const Group& group = workload.groups[g];
    Shape shape;
    std::map<int, std::int32_t> number;
    std::map<int, std::set<int>> nics;
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const Rank rank = group.members[i];
      seats_[static_cast<std::size_t>(rank) * kinds_ + group.kind] = {static_cast<std::int32_t>(g),
                                                                      static_cast<Rank>(i)};
      const Place& p = place(rank);
      shape.nodes.push_back(number.try_emplace(p.node, number.size()).first->second);
      nics[p.node].insert(p.nic);
    }
    for (const auto& [node, used] : nics)
      shape.nics = std::max(shape.nics, static_cast<int>(used.size()));
    shape.one_node = number.size() == 1;
    if (shape.one_node) shape.nics = 1;  // never leaves its node
    std::vector<std::int32_t> key = shape.nodes;
    key.push_back(shape.nics);
    const auto [it, fresh] =
        known.try_emplace(std::move(key), static_cast<std::uint32_t>(shapes_.size()));
    if (fresh) shapes_.push_back(std::move(shape));
    shape_of_.push_back(it->second);
  }
}

NicPair nics_of(const Cluster& cluster, const Schedule& schedule, const std::vector<Rank>& members,
                Rank from, Rank to, int channel) {
  const auto pick = [&](Rank member, Way way) {
    const Place& place = cluster.place(members[static_cast<std::size_t>(member)]);
    const int chosen =
        schedule.nics() > 0 ? schedule.nic(from, to, channel, way) : Schedule::kOwnNic;
    if (chosen == Schedule::kOwnNic) return place.nic;
    const int per_node = cluster.nics_per_node();
    return place.node * per_node + chosen * per_node / schedule.nics();
  };
  return {pick(from, Way::send), pick(to, Way::recv)};
}

}  // namespace ghostrank
