// Which links each connection of a call takes, where it is a flow, and which part of it each link
// carries. Private to fluid_*.cpp; see fluid_calls.h.
#pragma once

#include "emulator/shard/fluid_calls.h"

namespace ghostrank {

// How many turns a queue pair comes after the one with the first message of a call, which is the
// `turn`-th with so many messages.
inline std::uint32_t behind_first(std::uint32_t pair, std::uint32_t turn, std::uint64_t messages,
                                  std::uint32_t pairs) {
  const auto first = static_cast<std::uint32_t>(turn * messages % pairs);
  return (pair + pairs - first) % pairs;
}

template <typename Visit>
void FluidCalls::for_each_link(const Connected& edge, std::uint64_t flowlet,
                               const Visit& visit) const {
  const Topology& topology = cluster_.topology();
  const auto [from, to] = edge.nics;
  const std::uint32_t paths = topology.paths(from, to);
  if (paths == 0) return;
  const bool all = topology.routes_per() == Routing::Per::message;
  const std::uint32_t first = topology.choose(edge.connection, from, to, all ? 1 : flowlet);
  Part part{0, all ? paths : pairs_.count};
  for (; part.number < part.of; ++part.number) {
    const std::uint32_t number = all || part.number == 0
                                     ? (first + part.number) % paths
                                     : topology.choose(edge.connection, from, to, 0, part.number);
    const Path path = topology.path(from, to, number);
    for (int i = 0; i < path.links; ++i) visit(path.link[i], part);
  }
}

}  // namespace ghostrank
