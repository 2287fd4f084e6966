#include "collectives/server_placement.h"

namespace ghostrank {
namespace {

// Helpers go round robin over the servers, and then round robin over a server's NICs.
ServerSeat dedicated(const PlacedHelper& helper, const ServerSites& sites) {
  return {sites.nodes + helper.number % sites.count,
          helper.number / sites.count % sites.server_nics};
}

ServerSeat colocated(const PlacedHelper& helper, const ServerSites& sites) {
  return {helper.number % sites.count % sites.nodes,
          helper.number / sites.count % sites.nics_per_node};
}

// Uses first the servers that have nodes of their own, then one server on each GPU node.
ServerSeat mixed(const PlacedHelper& helper, const ServerSites& sites) {
  const int seats = sites.count + sites.nodes;
  const int seat = helper.number % seats, round = helper.number / seats;
  if (seat < sites.count) return {sites.nodes + seat, round % sites.server_nics};
  return {seat - sites.count, round % sites.nics_per_node};
}

constexpr ServerPlacement kRows[]{
    {"dedicated", dedicated}, {"colocated", colocated, /*machines=*/false}, {"mixed", mixed}};

}  // namespace

std::string why_no_seat(const ServerSeat& seat, const ServerPlacement& row,
                        const ServerSites& sites) {
  const int nodes = sites.nodes + (row.machines ? sites.count : 0);
  const int nics = seat.node < sites.nodes ? sites.nics_per_node : sites.server_nics;
  if (seat.node < 0 || seat.node >= nodes)
    return "chose node " + std::to_string(seat.node) + " of " + std::to_string(nodes) +
           "; they are counted from 0, and servers with nodes of their own follow those with GPUs";
  if (seat.nic < 0 || seat.nic >= nics)
    return "chose NIC " + std::to_string(seat.nic) + " of node " + std::to_string(seat.node) +
           ", which has " + std::to_string(nics);
  return "";
}

std::span<const ServerPlacement> server_placements() { return kRows; }

}  // namespace ghostrank
