#include "profiles/job/switches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "collectives/common/dice.h"
#include "profiles/error.h"
#include "profiles/job/direct_fabrics.h"
#include "profiles/job/leaf_ports.h"
#include "profiles/job/leaf_spine.h"

namespace ghostrank {
namespace {

constexpr int kLeavesOfAPod = 32, kMostUp = 64;  // where the job gives no number

std::string count(std::int64_t n, const char* one, const char* many) {
  return std::to_string(n) + " " + (n == 1 ? one : many);
}

// Returns the place of every node among `places`, which are `groups` runs of neighbours.
std::vector<int> places_of(const ClusterSpec& cluster, int places, int groups) {
  if (cluster.topology.placement == TopologySpec::Placement::file)
    return cluster.topology.place_of_node;
  std::vector<int> of(cluster.all_nodes());
  std::iota(of.begin(), of.end(), 0);
  const auto nodes = static_cast<int>(of.size());
  if (cluster.topology.placement == TopologySpec::Placement::spread) {
    // Round robin over the groups, as a scheduler that balances load.
    std::vector<std::vector<int>> in(groups);
    for (int p = 0; p < places; ++p) in[std::int64_t{p} * groups / places].push_back(p);
    int node = 0;
    for (std::size_t depth = 0; node < nodes; ++depth)
      for (const std::vector<int>& group : in)
        if (depth < group.size() && node < nodes) of[node++] = group[depth];
  } else if (cluster.topology.placement == TopologySpec::Placement::random) {
    std::vector<int> all(places);
    std::iota(all.begin(), all.end(), 0);
    checking::Dice dice(cluster.topology.seed);
    for (int i = 0; i < nodes; ++i)
      std::swap(all[i], all[i + static_cast<int>(dice.below(places - i))]);
    of.assign(all.begin(), all.begin() + nodes);
  }
  return of;
}

// Connects the NICs of every node to the leaves of its group.
void connect_nics(const ClusterSpec& cluster, SwitchGraph& out, int leaf_groups, int rails,
                  int pods) {
  const int nics = cluster.nics_per_node, nodes = cluster.all_nodes();
  const std::vector<int> place = places_of(cluster, out.places, pods);
  out.leaf_of.resize(nodes * nics);
  std::vector<bool> known(out.leaves);
  for (const Nic nic : out.leaf_of.keys()) {
    const int node = nic.value() / nics, rail = nic.value() % nics;
    const auto group =
        static_cast<std::uint32_t>(std::int64_t{place[node]} * leaf_groups / out.places);
    const std::uint32_t leaf =
        group * static_cast<std::uint32_t>(rails) + static_cast<std::uint32_t>(rail % rails);
    out.leaf_of[nic] = leaf;
    if (!has_nic(cluster, nic)) continue;
    ++out.switches[leaf].nics;
    if (!known[leaf]) out.switches[leaf].near = Node(node);
    known[leaf] = true;
  }
}

// Sets the length of the longest path between leaves with NICs: those of a pod meet at its spines,
// pods at the cores.
void find_longest(SwitchGraph& graph) {
  const auto [first, last] = std::minmax_element(graph.leaf_of.begin(), graph.leaf_of.end());
  const bool one_pod = graph.switches[*first].pod == graph.switches[*last].pod;
  graph.longest = *first == *last ? 0 : one_pod ? 2 : 4;
}

SwitchGraph leaves_and_spines(const ClusterSpec& cluster) {
  const LeafSpine size = leaf_spine_of(cluster);
  SwitchGraph out;
  out.leaves = size.leaves();
  out.places = fabric_nodes(cluster);
  for (int l = 0; l < size.leaves(); ++l) out.switches.push_back({"leaf" + std::to_string(l)});
  for (int s = 0; s < size.spines; ++s) out.switches.push_back({"spine" + std::to_string(s)});
  for (std::uint32_t l = 0; l < out.leaves; ++l)
    for (int s = 0; s < size.spines; ++s)
      out.cables.push_back({l, out.leaves + s, size.uplink_bps});
  out.tiers = {{"leaf-spine", "spine-leaf", 0, static_cast<std::uint32_t>(out.cables.size())}};
  connect_nics(cluster, out, size.groups, size.rails, size.groups);
  find_longest(out);
  const bool rail = cluster.topology.kind == TopologySpec::Kind::rail_optimised;
  out.summary = std::string(rail ? "rail_optimised: " : "leaf_spine: ") +
                count(size.leaves(), "leaf", "leaves") + ", " +
                count(size.spines, "spine", "spines");
  return out;
}

SwitchGraph rails_alone(const ClusterSpec& cluster) {
  SwitchGraph out;
  out.leaves = cluster.nics_per_node;
  out.places = fabric_nodes(cluster);
  out.connected = cluster.nics_per_node == 1;
  for (std::uint32_t r = 0; r < out.leaves; ++r)
    out.switches.push_back({"rail" + std::to_string(r)});
  connect_nics(cluster, out, 1, cluster.nics_per_node, 1);
  out.summary = "rail_only: " + count(cluster.nics_per_node, "rail", "rails");
  return out;
}

SwitchGraph three_tiers(const ClusterSpec& cluster) {
  const FatTree size = fat_tree_of(cluster);
  SwitchGraph out;
  const int leaves = size.pods * size.leaves, spines = size.pods * size.spines;
  out.leaves = leaves;
  out.places = fabric_nodes(cluster);
  const auto add = [&](const std::string& name, int pod) {
    out.switches.push_back({name, Node(0), 0, static_cast<std::uint32_t>(pod)});
  };
  const auto numbered = [](const char* what, int pod, int i) {
    return what + std::to_string(pod) + "." + std::to_string(i);
  };
  for (int p = 0; p < size.pods; ++p)
    for (int l = 0; l < size.leaves; ++l) add(numbered("leaf", p, l), p);
  for (int p = 0; p < size.pods; ++p)
    for (int s = 0; s < size.spines; ++s) add(numbered("spine", p, s), p);
  for (int c = 0; c < size.spines * size.cores; ++c) add("core" + std::to_string(c), size.pods);
  const auto number = [](int n) { return static_cast<std::uint32_t>(n); };
  for (int p = 0; p < size.pods; ++p)
    for (int l = 0; l < size.leaves; ++l)
      for (int s = 0; s < size.spines; ++s)
        out.cables.push_back(
            {number(p * size.leaves + l), number(leaves + p * size.spines + s), size.leaf_bps});
  const std::uint32_t below = number(static_cast<int>(out.cables.size()));
  for (int p = 0; p < size.pods; ++p)
    for (int s = 0; s < size.spines; ++s)
      for (int c = 0; c < size.cores; ++c)
        out.cables.push_back({number(leaves + p * size.spines + s),
                              number(leaves + spines + s * size.cores + c), size.spine_bps});
  out.tiers = {
      {"leaf-spine", "spine-leaf", 0, below},
      {"spine-core", "core-spine", below, static_cast<std::uint32_t>(out.cables.size()) - below}};
  connect_nics(cluster, out, leaves, 1, size.pods);
  find_longest(out);
  for (int s = 0; s < spines; ++s)  // a spine is close to the nodes of its pod
    out.switches[leaves + s].near = out.switches[s / size.spines * size.leaves].near;
  out.summary = "fat_tree: " + count(size.pods, "pod", "pods") + " of " +
                count(size.leaves, "leaf", "leaves") + " and " +
                count(size.spines, "spine", "spines") + ", " +
                count(std::int64_t{size.spines} * size.cores, "core", "cores");
  return out;
}

// Returns how many links away the farthest switch from `start` is.
int farthest(const SwitchGraph& graph, const std::vector<std::vector<std::uint32_t>>& next,
             std::uint32_t start) {
  std::vector<int> away(graph.switches.size(), -1);
  std::vector<std::uint32_t> queue{start};
  away[start] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const std::uint32_t to : next[queue[i]])
      if (away[to] < 0) {
        away[to] = away[queue[i]] + 1;
        queue.push_back(to);
      }
  return away[queue.back()];
}

SwitchGraph routers_alone(const ClusterSpec& cluster) {
  const bool torus = cluster.topology.kind == TopologySpec::Kind::torus;
  SwitchGraph out = torus ? torus_of(cluster) : dragonfly_graph(cluster);
  const Dragonfly size = torus ? Dragonfly() : dragonfly_of(cluster, out.places);
  const int leaves = static_cast<int>(out.leaves);
  connect_nics(cluster, out, leaves, 1, torus ? leaves : size.groups);
  if (std::any_of(out.switches.begin(), out.switches.end(),
                  [](const SwitchGraph::Switch& s) { return s.nics == 0; }))
    return out;
  // All routers of a torus are alike, and all groups of a dragonfly.
  std::vector<std::vector<std::uint32_t>> next(out.switches.size());
  for (const SwitchGraph::Cable& cable : out.cables) {
    next[cable.a].push_back(cable.b);
    next[cable.b].push_back(cable.a);
  }
  for (int r = 0; r < size.routers; ++r)
    out.longest = std::max(out.longest, farthest(out, next, static_cast<std::uint32_t>(r)));
  return out;
}

// ".2": how the second of parallel cables, which are neighbours in the list, is told from the
// first.
std::string number_among(const SwitchGraph& graph, std::uint32_t cable) {
  const SwitchGraph::Cable& c = graph.cables[cable];
  int earlier = 0;
  for (std::uint32_t i = cable; i-- > 0 && graph.cables[i].a == c.a && graph.cables[i].b == c.b;)
    ++earlier;
  return earlier == 0 ? "" : "." + std::to_string(earlier + 1);
}

// Marks the links that the job says have failed or are slower.
void mark_links(const TopologySpec& spec, SwitchGraph& graph) {
  if (spec.failed.empty() && spec.degraded.empty()) return;
  const CableNames names(graph);
  const auto find = [&](const std::string& key, const std::string& name) -> SwitchGraph::Cable& {
    const std::vector<std::uint32_t> found = names.find(name);
    if (found.empty())
      throw Error("cluster.topology." + key + ": there is no link '" + name + "'; one is called " +
                  (graph.cables.empty() ? "nothing: this topology has none" : names.all().front()));
    if (found.size() > 1)
      throw Error("cluster.topology." + key + ": two links are called '" + name +
                  "'; give a switch at their ends another name");
    return graph.cables[found.front()];
  };
  for (const auto& [name, bps] : spec.degraded) find("degraded", name).bps = bps;
  for (const std::string& name : spec.failed) find("failed", name).failed = true;
  if (!spec.failed.empty()) graph.longest = 0;
}

// Refuses a fabric in which some NIC of the job cannot reach another.
void check_reach(const SwitchGraph& graph) {
  std::vector<std::uint32_t> set(graph.switches.size());
  std::iota(set.begin(), set.end(), 0u);
  const auto top = [&](std::uint32_t s) {
    while (set[s] != s) s = set[s] = set[set[s]];
    return s;
  };
  for (const SwitchGraph::Cable& cable : graph.cables)
    if (!cable.failed) set[top(cable.a)] = top(cable.b);
  const SwitchGraph::Switch* first = nullptr;
  std::uint32_t first_set = 0;
  for (std::uint32_t s = 0; s < graph.leaves; ++s) {
    if (graph.switches[s].nics == 0) continue;
    if (!first) {
      first = &graph.switches[s];
      first_set = top(s);
    } else if (top(s) != first_set) {
      throw Error("cluster.topology: no path leads from " + first->name + " to " +
                  graph.switches[s].name +
                  ", and nodes are connected to both; add links, or let "
                  "fewer fail");
    }
  }
}

}  // namespace

FatTree fat_tree_of(const ClusterSpec& cluster) {
  const TopologySpec& spec = cluster.topology;
  const int nodes = fabric_nodes(cluster);
  FatTree out;
  const int usual = ceiling(std::int64_t{nodes} * cluster.nics_per_node, kPortsDown);
  const int wanted = spec.leaves > 0 ? spec.leaves : usual;
  out.pods = std::clamp(spec.pods > 0 ? spec.pods : ceiling(wanted, kLeavesOfAPod), 1, nodes);
  out.leaves = std::clamp(ceiling(wanted, out.pods), 1, ceiling(nodes, out.pods));
  out.ports = ceiling(nodes, std::int64_t{out.pods} * out.leaves) * cluster.nics_per_node;
  const auto ups = [](double ports) {
    return static_cast<int>(std::clamp<double>(std::ceil(ports), 1, kMostUp));
  };
  out.spines = spec.spines > 0 ? spec.spines : ups(out.ports / spec.oversubscription);
  const double up = cluster.nic.rate_bps * out.ports / spec.oversubscription;  // of a leaf
  out.leaf_bps = spec.uplink_bps >= 0 ? spec.uplink_bps : up / out.spines;
  const double of_spine = out.leaf_bps * out.leaves / spec.pod_oversubscription;
  out.cores = spec.cores > 0 ? ceiling(spec.cores, out.spines)
                             : ups(out.leaves / spec.pod_oversubscription);
  out.spine_bps = of_spine / out.cores;
  return out;
}

bool has_nic(const ClusterSpec& cluster, Nic nic) {
  const int node = nic.value() / cluster.nics_per_node;
  return node < cluster.rank_nodes() || nic.value() % cluster.nics_per_node < cluster.servers.nics;
}

std::string cable_name(const SwitchGraph& graph, std::uint32_t cable) {
  const SwitchGraph::Cable& c = graph.cables[cable];
  return graph.switches[c.a].name + "-" + graph.switches[c.b].name + number_among(graph, cable);
}

std::string cable_name_back(const SwitchGraph& graph, std::uint32_t cable) {
  const SwitchGraph::Cable& c = graph.cables[cable];
  return graph.switches[c.b].name + "-" + graph.switches[c.a].name + number_among(graph, cable);
}

CableNames::CableNames(const SwitchGraph& graph) {
  for (std::uint32_t c = 0; c < graph.cables.size(); ++c) {
    there_.emplace(cable_name(graph, c), c);
    back_.emplace(cable_name_back(graph, c), c);
  }
}

std::vector<std::string> CableNames::all() const {
  std::vector<std::string> out;
  for (const auto& [name, cable] : there_) out.push_back(name);
  return out;
}

std::vector<std::uint32_t> CableNames::find(const std::string& name) const {
  std::vector<std::uint32_t> out;
  for (const auto* names : {&there_, &back_}) {
    const auto [first, last] = names->equal_range(name);
    for (auto at = first; at != last; ++at) out.push_back(at->second);
    if (!out.empty()) break;
  }
  return out;
}

SwitchGraph switches_of(const ClusterSpec& cluster) {
  using Kind = TopologySpec::Kind;
  const TopologySpec& spec = cluster.topology;
  SwitchGraph graph = spec.kind == Kind::fat_tree    ? three_tiers(cluster)
                      : spec.kind == Kind::rail_only ? rails_alone(cluster)
                      : spec.kind == Kind::torus || spec.kind == Kind::dragonfly
                          ? routers_alone(cluster)
                      : spec.kind == Kind::file ? *spec.file
                                                : leaves_and_spines(cluster);
  mark_links(spec, graph);
  if (graph.connected) check_reach(graph);
  return graph;
}

}  // namespace ghostrank
