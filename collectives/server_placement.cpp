#include "collectives/server_placement.h"

namespace ghostrank {
namespace {

// Helpers go round robin over the servers, and then round robin over a server's NICs.
ServerLocation dedicated(const PlacedHelper& helper, const ServerSites& sites) {
  return {sites.nodes + helper.number % sites.count,
          helper.number / sites.count % sites.server_nics};
}

ServerLocation colocated(const PlacedHelper& helper, const ServerSites& sites) {
  return {helper.number % sites.count % sites.nodes,
          helper.number / sites.count % sites.nics_per_node};
}

// Uses first the servers that have nodes of their own, then one server on each GPU node.
ServerLocation mixed(const PlacedHelper& helper, const ServerSites& sites) {
  const int places = sites.count + sites.nodes;
  const int place = helper.number % places, round = helper.number / places;
  if (place < sites.count) return {sites.nodes + place, round % sites.server_nics};
  return {place - sites.count, round % sites.nics_per_node};
}

constexpr ServerPlacement kPlacements[]{{"dedicated", dedicated},
                                        {"colocated", colocated, /*machines=*/false},
                                        {"mixed", mixed, /*machines=*/true, /*everywhere=*/true}};

}  // namespace

std::string why_no_location(const ServerLocation& location, const ServerPlacement& row,
                            const ServerSites& sites) {
  const int nodes = sites.nodes + (row.machines ? sites.count : 0);
  const int nics = location.node < sites.nodes ? sites.nics_per_node : sites.server_nics;
  if (location.node < 0 || location.node >= nodes)
    return "chose node " + std::to_string(location.node) + " of " + std::to_string(nodes) +
           "; they are counted from 0, and servers with nodes of their own follow those with GPUs";
  if (location.nic < 0 || location.nic >= nics)
    return "chose NIC " + std::to_string(location.nic) + " of node " +
           std::to_string(location.node) + ", which has " + std::to_string(nics);
  return "";
}

std::span<const ServerPlacement> server_placements() { return kPlacements; }

}  // namespace ghostrank
