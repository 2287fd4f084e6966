// Which of several equal-cost paths through a modelled network a message takes. Each policy is a
// row, like an algorithm. A shared object may bring its own rows (plugin.h); a job names one in
// cluster.topology.routing.
//
// Threading: constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "collectives/common/number.h"

namespace ghostrank {

// A connection, or a part of it, that needs a path.
struct RoutedFlow {
  // NIC numbers in the whole cluster: node * nics_per_node + NIC of the node. For a message to
  // many, target_nic is the NIC of its first receiver.
  Nic source_nic, target_nic;
  std::int32_t nics_per_node = 1;
  // Hash of the connection (communicator, channel, sender, receiver) and run.seed: stands for the
  // hash that a switch computes of the packet's addresses and ports.
  std::uint64_t hash = 0;
  // Number of the message or flowlet on its connection, from 1; 0: the routing chooses once for the
  // whole connection.
  std::uint64_t number = 0;
  std::uint32_t paths = 1;  // spines, for example
  // Cables on which these begin. Paths are numbered cable by cable.
  std::uint32_t first_hops = 1;
  // Number of target_nic where NICs are counted leaf by leaf.
  std::uint32_t target_place = 0;
};

struct Routing {
  std::string_view name;
  // Returns a number below `paths`. Must be pure, because every thread and the plan call it on
  // their own.
  std::uint32_t (*choose)(const RoutedFlow&) = nullptr;
  // What choose() is called for. A flowlet is a burst of messages: it ends when its connection has
  // sent nothing for cluster.topology.flowlet_gap_us. Messages of different paths may overtake each
  // other, and the receiver reorders them.
  enum class Per : std::uint8_t { connection, flowlet, message };
  Per per = Per::connection;
};

// The built-in rows, the default first.
std::span<const Routing> routings();

}  // namespace ghostrank
