// Which of several equal ways through a network of links a message takes: rows, as algorithms have
// them. A row of one's own comes in a shared object (plugin.h), and a job names it in
// cluster.topology.routing.
//
// Threading: constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ghostrank {

// A connection, or one message of it, that is to choose.
struct RoutedFlow {
  // Of the whole cluster: node * nics_per_node + NIC of the node. What goes to many has the NIC of
  // its first receiver.
  std::int32_t source_nic = 0, target_nic = 0;
  std::int32_t nics_per_node = 1;
  // Of the connection (communicator, channel, sender, receiver) and run.seed: what a switch makes
  // of the addresses and ports of its packets.
  std::uint64_t hash = 0;
  std::uint64_t message = 0;  // its number on the connection, from 1; 0: asked once for all
  std::uint32_t ways = 1;     // spines, say
};

struct Routing {
  std::string_view name;
  // A number below `ways`; a pure function, which every thread and the plan ask for themselves.
  std::uint32_t (*choose)(const RoutedFlow&) = nullptr;
  // Asked for each message, which may then overtake others of its connection: the receiver puts
  // them in order. Else once for a connection.
  bool per_message = false;
};

// Those that are built in, the usual one first.
std::span<const Routing> routings();

}  // namespace ghostrank
