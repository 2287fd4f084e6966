// Where the helpers of schemes (agent.h) go: rows, as algorithms have them. A row of one's own
// comes in a shared object (plugin.h), and a job names it in servers.placement.
//
// Threading: constant data.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collectives/agent.h"

namespace ghostrank {

// A helper that has no rank to be beside.
struct PlacedHelper {
  PartyKind kind = PartyKind::server;
  int number = 0;  // among all such of the job, one communicator after the other
  int index = 0;   // among the helpers of its communicator
  std::span<const std::int32_t> nodes;  // of the communicator's ranks, by position
};

// What there is to be on.
struct ServerSites {
  int nodes = 1;          // with GPUs or storage, 0 .. nodes-1
  int nics_per_node = 1;  // of these
  int count = 1;          // servers.count: with `machines` nodes of their own, nodes .. +count-1
  int server_nics = 1;    // of those
};

struct ServerSeat {
  int node = 0;
  int nic = 0;  // of that node
};

struct ServerPlacement {
  std::string_view name;
  // A pure function; what it gives must be there.
  ServerSeat (*place)(const PlacedHelper&, const ServerSites&) = nullptr;
  bool machines = true;  // whether servers have nodes of their own
};

// What is wrong with a seat that the row gave; empty: nothing.
std::string why_no_seat(const ServerSeat& seat, const ServerPlacement& row,
                        const ServerSites& sites);

// Those that are built in, the usual one first.
std::span<const ServerPlacement> server_placements();

}  // namespace ghostrank
