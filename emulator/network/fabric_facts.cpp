#include "emulator/network/fabric_facts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "emulator/network/switch_routes.h"

namespace ghostrank {
namespace {

// The maximum flow from a source to a sink (Dinic, 1970): blocking flows along shortest paths,
// until none is left.
class MostFlow {
 public:
  explicit MostFlow(std::size_t nodes) : out_(nodes), level_(nodes), next_(nodes) {}

  void add(std::size_t a, std::size_t b, double forth, double back) {
    out_[a].push_back(edges_.size());
    edges_.push_back({b, forth});
    out_[b].push_back(edges_.size());
    edges_.push_back({a, back});
  }

  double between(std::size_t source, std::size_t sink) {
    double total = 0;
    while (search(source, sink)) {
      std::fill(next_.begin(), next_.end(), 0);
      double more = 0;
      while ((more = push(source, sink, std::numeric_limits<double>::max())) > 0) total += more;
    }
    return total;
  }

 private:
  static constexpr double kNothing = 1e-3;  // bits per second
  struct Edge {
    std::size_t to;
    double room;
  };

  bool search(std::size_t source, std::size_t sink) {
    std::fill(level_.begin(), level_.end(), -1);
    level_[source] = 0;
    std::vector<std::size_t> queue{source};
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (const std::size_t e : out_[queue[i]])
        if (edges_[e].room > kNothing && level_[edges_[e].to] < 0) {
          level_[edges_[e].to] = level_[queue[i]] + 1;
          queue.push_back(edges_[e].to);
        }
    return level_[sink] >= 0;
  }

  double push(std::size_t at, std::size_t sink, double most) {  // as deep as a path is long
    if (at == sink) return most;
    for (; next_[at] < out_[at].size(); ++next_[at]) {
      const std::size_t e = out_[at][next_[at]];
      if (edges_[e].room <= kNothing || level_[edges_[e].to] != level_[at] + 1) continue;
      const double pushed = push(edges_[e].to, sink, std::min(most, edges_[e].room));
      if (pushed <= 0) continue;
      edges_[e].room -= pushed;
      edges_[e ^ 1].room += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<std::vector<std::size_t>> out_;
  std::vector<Edge> edges_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
};

void add_bisection(const SwitchGraph& graph, const ClusterSpec& cluster, FabricFacts& out) {
  const double nic_bps = cluster.nic.rate_bps, server_bps = cluster.servers.nic.rate_bps;
  if (nic_bps <= 0 || out.nics < 2) return;
  const double most = std::max(nic_bps, server_bps) * out.nics;  // as if unlimited
  const Nic first_server(cluster.rank_nodes() * cluster.nics_per_node);
  const auto rate_of = [&](Nic nic) {
    return nic < first_server ? nic_bps : server_bps > 0 ? server_bps : most;
  };
  const std::size_t switches = graph.switches.size();
  std::vector<double> first(switches), second(switches);
  const int half = out.nics / 2;
  int seen = 0;
  double sent = 0;
  for (const Nic nic : graph.leaf_of.keys()) {
    if (!has_nic(cluster, nic)) continue;
    const bool sends = seen++ < half;
    (sends ? first : second)[graph.leaf_of[nic]] += rate_of(nic);
    sent += sends ? rate_of(nic) : 0;
  }
  MostFlow flow(switches + 2);
  for (std::size_t s = 0; s < switches; ++s) {
    flow.add(switches, s, first[s], 0);
    flow.add(s, switches + 1, second[s], 0);
  }
  for (const SwitchGraph::Cable& cable : graph.cables) {
    const double bps = cable.bps > 0 ? cable.bps : most;
    if (!cable.failed) flow.add(cable.a, cable.b, bps, bps);
  }
  out.bisection_bps = flow.between(switches, switches + 1);
  out.bisection_share = out.bisection_bps / sent;
}

// "leaf0.3" -> "leaf"
std::string stem(const std::string& name) {
  const std::string text = name.substr(0, name.find_first_of("0123456789"));
  return text.empty() ? name : text;
}

}  // namespace

std::vector<int> layers_of(const SwitchGraph& graph) {
  std::vector<std::vector<std::uint32_t>> next(graph.switches.size());
  for (const SwitchGraph::Cable& cable : graph.cables) {
    next[cable.a].push_back(cable.b);
    next[cable.b].push_back(cable.a);
  }
  std::vector<int> layer(graph.switches.size(), -1);
  std::vector<std::uint32_t> queue;
  for (std::uint32_t s = 0; s < graph.leaves; ++s) {
    layer[s] = 0;
    queue.push_back(s);
  }
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const std::uint32_t to : next[queue[i]])
      if (layer[to] < 0) {
        layer[to] = layer[queue[i]] + 1;
        queue.push_back(to);
      }
  for (int& l : layer) l = std::max(l, 0);  // a switch without cables
  return layer;
}

FabricFacts fabric_facts(const SwitchGraph& graph, const ClusterSpec& cluster) {
  FabricFacts out;
  std::vector<int> ports(graph.switches.size());
  for (std::size_t s = 0; s < ports.size(); ++s) {
    ports[s] = graph.switches[s].nics;
    out.nics += ports[s];
  }
  std::map<std::pair<std::size_t, double>, FabricFacts::Cables> cables;
  for (std::size_t t = 0; t < graph.tiers.size(); ++t) {
    const SwitchGraph::Tier& tier = graph.tiers[t];
    for (std::uint32_t c = tier.first; c < tier.first + tier.count; ++c) {
      const SwitchGraph::Cable& cable = graph.cables[c];
      ports[cable.a] += !cable.failed;
      ports[cable.b] += !cable.failed;
      FabricFacts::Cables& row = cables[{t, cable.bps}];
      row.tier = tier.up;
      row.bps = cable.bps;
      ++row.count;
      row.failed += cable.failed;
    }
  }
  for (auto& [key, row] : cables) out.cables.push_back(std::move(row));
  const std::vector<int> layer = layers_of(graph);
  for (std::size_t s = 0; s < ports.size(); ++s) {
    const auto l = static_cast<std::size_t>(layer[s]);
    if (out.layers.size() <= l) out.layers.resize(l + 1);
    if (out.layers[l].switches++ == 0) out.layers[l].name = stem(graph.switches[s].name);
    out.layers[l].ports = std::max(out.layers[l].ports, ports[s]);
    out.ports += ports[s];
  }
  out.diameter = graph.cables.empty() ? 0 : SwitchRoutes(graph).longest();
  add_bisection(graph, cluster, out);
  return out;
}

}  // namespace ghostrank
