#include "profiles/job/leaf_spine.h"

#include <algorithm>
#include <cmath>

#include "profiles/job/direct_fabrics.h"
#include "profiles/job/leaf_ports.h"

namespace ghostrank {
namespace {

constexpr int kMostSpines = 64;    // where the job gives no number
constexpr int kNodesOfARail = 32;  // nodes that share the leaves of their rails

}  // namespace

int fabric_nodes(const ClusterSpec& cluster) {
  const int nodes = std::max(cluster.topology.places, cluster.all_nodes());
  const std::int64_t routers = routers_of(cluster, nodes);
  return routers > 0 ? static_cast<int>(ceiling(nodes, routers) * routers) : nodes;
}

LeafSpine leaf_spine_of(const ClusterSpec& cluster) {
  const TopologySpec& spec = cluster.topology;
  const bool rail = spec.kind == TopologySpec::Kind::rail_optimised;
  const int nodes = fabric_nodes(cluster);
  LeafSpine out;
  out.rails = rail ? cluster.nics_per_node : 1;
  // At least two leaves, because a single one has no use for spines.
  const int usual =
      rail ? ceiling(nodes, kNodesOfARail)
           : std::max(2, ceiling(std::int64_t{nodes} * cluster.nics_per_node, kPortsDown));
  out.groups = spec.leaves > 0 ? spec.leaves / out.rails : usual;
  out.groups = std::clamp(out.groups, 1, nodes);
  out.ports = ceiling(nodes, out.groups) * (cluster.nics_per_node / out.rails);
  const double up = std::ceil(out.ports / spec.oversubscription);
  out.spines =
      spec.spines > 0 ? spec.spines : static_cast<int>(std::clamp<double>(up, 1, kMostSpines));
  out.uplink_bps = spec.uplink_bps >= 0
                       ? spec.uplink_bps
                       : cluster.nic.rate_bps * out.ports / (spec.oversubscription * out.spines);
  return out;
}

}  // namespace ghostrank
