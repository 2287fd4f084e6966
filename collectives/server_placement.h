// Where the helpers of schemes (agent.h) are placed. Each policy is a row, like an algorithm. A
// shared object may bring its own rows (plugin.h); a job names one in servers.placement.
//
// Threading: constant data.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collectives/agent.h"

namespace ghostrank {

// A helper that is not tied to a rank (Helper::beside is kNoRank).
struct PlacedHelper {
  PartyKind kind = PartyKind::server;
  // Among all such helpers of the job, communicator by communicator; switches of the modelled
  // network take no place.
  int number = 0;
  int index = 0;                        // among the helpers of its communicator
  std::span<const std::int32_t> nodes;  // node of each rank of the communicator, by group rank
};

// The nodes and NICs that a row may choose from.
struct ServerSites {
  int nodes = 1;          // nodes with GPUs or storage: 0 .. nodes-1
  int nics_per_node = 1;  // of each of these nodes
  int count = 1;        // servers.count; if `machines`, their own nodes are nodes .. nodes+count-1
  int server_nics = 1;  // of each server's own node
};

struct ServerLocation {
  int node = 0;
  int nic = 0;  // number of the NIC on that node
};

struct ServerPlacement {
  std::string_view name;
  // A pure function; must return a node and a NIC that exist.
  ServerLocation (*place)(const PlacedHelper&, const ServerSites&) = nullptr;
  bool machines = true;     // true: servers have nodes of their own
  bool everywhere = false;  // there is also one place beside the GPUs of every node
};

// Returns what is wrong with a location that the row returned; empty: nothing.
std::string why_no_location(const ServerLocation& location, const ServerPlacement& row,
                            const ServerSites& sites);

// The built-in rows, the default first.
std::span<const ServerPlacement> server_placements();

}  // namespace ghostrank
