// Which of several equal-cost paths through a modelled network a message takes. Each policy is a
// row, like an algorithm. A shared object may bring its own rows (plugin.h); a job names one in
// cluster.topology.routing.
//
// Threading: constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "collectives/number.h"

namespace ghostrank {

// A connection, or one message of it, that needs a path.
struct RoutedFlow {
  // NIC numbers in the whole cluster: node * nics_per_node + NIC of the node. For a message to
  // many, target_nic is the NIC of its first receiver.
  Nic source_nic, target_nic;
  std::int32_t nics_per_node = 1;
  // Hash of the connection (communicator, channel, sender, receiver) and run.seed: stands for the
  // hash that a switch computes of the packet's addresses and ports.
  std::uint64_t hash = 0;
  std::uint64_t message = 0;  // its number on the connection, from 1; 0: one choice for all
  std::uint32_t paths = 1;    // spines, for example
};

struct Routing {
  std::string_view name;
  // Returns a number below `paths`. Must be pure, because every thread and the plan call it on
  // their own.
  std::uint32_t (*choose)(const RoutedFlow&) = nullptr;
  // True: called for each message. Messages may then overtake others of their connection, and the
  // receiver reorders them. False: called once per connection.
  bool per_message = false;
};

// The built-in rows, the default first.
std::span<const Routing> routings();

}  // namespace ghostrank
