// A server placement of your own as a plug-in: each helper of a scheme goes to a node that has a
// rank of its communicator, so that this rank's traffic never leaves the node. Several helpers go
// round robin over the communicator's ranks and their nodes.
//
//   node 0: rank 0, helper     node 1: rank 1      node 2: rank 2, other's helper     …
//
// Build it with the CMakeLists.txt beside it; in a job
//   collectives: {plugins: [packet_server.so, near_servers.so], allreduce: mine/packet-server}
//   servers: {count: 1, placement: near}
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

ServerLocation near(const PlacedHelper& helper, const ServerSites& sites) {
  const auto turn = static_cast<std::size_t>(helper.number);
  return {helper.nodes[turn % helper.nodes.size()], helper.index % sites.nics_per_node};
}

const ServerPlacement kPlacements[]{{"near", near, /*machines=*/false}};

}  // namespace

GHOSTRANK_PLUGIN(kPlacements)
