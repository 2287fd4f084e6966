#include "profiles/job/direct_fabrics.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "profiles/job/leaf_ports.h"
#include "profiles/job/leaf_spine.h"
#include "profiles/job/switches.h"

namespace ghostrank {
namespace {

double link_bps(const ClusterSpec& cluster) {
  return cluster.topology.link_bps >= 0 ? cluster.topology.link_bps : cluster.nic.rate_bps;
}

std::uint32_t number(std::int64_t n) { return static_cast<std::uint32_t>(n); }

SwitchGraph empty_graph(const ClusterSpec& cluster) {
  SwitchGraph out;
  out.places = fabric_nodes(cluster);
  out.leaves = number(routers_of(cluster, out.places));
  return out;
}

// The cables that have been added since the last tier.
void end_tier(const std::string& name, SwitchGraph& out) {
  const std::uint32_t first =
      out.tiers.empty() ? 0 : out.tiers.back().first + out.tiers.back().count;
  out.tiers.push_back({name + "+", name + "-", first, number(std::ssize(out.cables)) - first});
}

}  // namespace

Dragonfly dragonfly_of(const ClusterSpec& cluster, int nodes) {
  const TopologySpec& spec = cluster.topology;
  const int nics = cluster.nics_per_node;
  Dragonfly out;
  for (int on_router = 1;; ++on_router) {
    if (spec.routers > 0)
      on_router = spec.groups > 0 ? ceiling(nodes, std::int64_t{spec.routers} * spec.groups)
                                  : std::max(1, spec.routers / (2 * nics));
    const int least_groups = spec.groups > 0 ? spec.groups : 2;
    out.routers = spec.routers > 0
                      ? spec.routers
                      : std::min(2 * on_router * nics,
                                 ceiling(nodes, std::int64_t{least_groups} * on_router));
    const std::int64_t room = std::int64_t{out.routers} * on_router;
    out.groups = spec.groups > 0 ? spec.groups : ceiling(nodes, room);
    const int least_links = ceiling(out.groups - 1, out.routers);
    out.global_links =
        spec.global_links > 0 ? spec.global_links : std::max(on_router * nics, least_links);
    const bool enough = room * out.groups >= nodes;
    if (spec.routers > 0 || (enough && (spec.groups > 0 || on_router * nics >= least_links)))
      return out;
  }
}

std::int64_t routers_of(const ClusterSpec& cluster, int nodes) {
  const TopologySpec& spec = cluster.topology;
  if (spec.kind == TopologySpec::Kind::torus)
    return std::accumulate(spec.dimensions.begin(), spec.dimensions.end(), std::int64_t{1},
                           std::multiplies<>());
  if (spec.kind != TopologySpec::Kind::dragonfly) return 0;
  const Dragonfly size = dragonfly_of(cluster, nodes);
  return std::int64_t{size.groups} * size.routers;
}

std::int64_t links_between_routers(const ClusterSpec& cluster) {
  const TopologySpec& spec = cluster.topology;
  const int nodes = fabric_nodes(cluster);
  const std::int64_t routers = routers_of(cluster, nodes);
  if (spec.kind == TopologySpec::Kind::torus) {
    std::int64_t cables = 0;
    for (const int size : spec.dimensions)
      cables += size > 2 ? routers : size == 2 ? routers / 2 : 0;
    return 2 * cables;
  }
  const Dragonfly size = dragonfly_of(cluster, nodes);
  return routers * (size.routers - 1) +
         std::int64_t{size.groups} * (size.groups - 1) * size.between();
}

SwitchGraph torus_of(const ClusterSpec& cluster) {
  const std::vector<int>& sizes = cluster.topology.dimensions;
  SwitchGraph out = empty_graph(cluster);
  std::vector<int> at(sizes.size());  // the first coordinate is the fastest
  for (std::uint32_t r = 0; r < out.leaves; ++r) {
    std::string name = "router";
    for (std::size_t d = 0; d < at.size(); ++d) name += (d > 0 ? "." : "") + std::to_string(at[d]);
    out.switches.push_back({name, Node(0), 0, number(at.back())});
    for (std::size_t d = 0; d < at.size() && ++at[d] == sizes[d]; ++d) at[d] = 0;
  }
  std::int64_t stride = 1;
  std::string text;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const int size = sizes[d];
    for (std::int64_t r = 0; r < out.leaves; ++r) {
      const std::int64_t place = r / stride % size;
      const bool last = place == size - 1;
      if (size > 2 || (size == 2 && !last))
        out.cables.push_back(
            {number(r), number(last ? r - place * stride : r + stride), link_bps(cluster)});
    }
    end_tier(sizes.size() <= 3 ? std::string(1, "xyz"[d]) : "dimension" + std::to_string(d), out);
    stride *= size;
    text += (d > 0 ? " x " : "") + std::to_string(size);
  }
  out.summary = "torus: " + text + " routers";
  return out;
}

SwitchGraph dragonfly_graph(const ClusterSpec& cluster) {
  SwitchGraph out = empty_graph(cluster);
  const Dragonfly size = dragonfly_of(cluster, out.places);
  for (int g = 0; g < size.groups; ++g)
    for (int r = 0; r < size.routers; ++r)
      out.switches.push_back(
          {"router" + std::to_string(g) + "." + std::to_string(r), Node(0), 0, number(g)});
  for (int g = 0; g < size.groups; ++g)
    for (int a = 0; a < size.routers; ++a)
      for (int b = a + 1; b < size.routers; ++b)
        out.cables.push_back({number(std::int64_t{g} * size.routers + a),
                              number(std::int64_t{g} * size.routers + b), link_bps(cluster)});
  end_tier("local", out);
  // A group's ports are numbered router by router, and those to the next group, the one after it
  // and so on take turns.
  const double bps =
      cluster.topology.global_bps >= 0 ? cluster.topology.global_bps : link_bps(cluster);
  const auto router = [&](int group, int target, int cable) {
    const int ahead = (target - group + size.groups) % size.groups - 1;
    const std::int64_t port = ahead + std::int64_t{cable} * (size.groups - 1);
    return number(std::int64_t{group} * size.routers + port / size.global_links);
  };
  for (int g = 0; g < size.groups; ++g)
    for (int to = g + 1; to < size.groups; ++to)
      for (int c = 0; c < size.between(); ++c)
        out.cables.push_back({router(g, to, c), router(to, g, c), bps});
  end_tier("global", out);
  out.summary = "dragonfly: " + std::to_string(size.groups) + " groups of " +
                std::to_string(size.routers) + " routers, " + std::to_string(size.between()) +
                (size.between() == 1 ? " cable" : " cables") + " between two groups";
  return out;
}

}  // namespace ghostrank
