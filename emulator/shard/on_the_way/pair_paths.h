// The paths of connections with several queue pairs (fabric.qps_per_connection), by connection and
// pair: remembered, because every message asks for one.
//
// Threading: one owner (a shard).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/network/topology.h"

namespace ghostrank {

class PairPaths {
 public:
  // As Topology::choose_id() says.
  std::uint32_t id(const Topology& topology, const RoutedConnection& connection, Nic from, Nic to,
                   std::uint32_t pair) {
    std::vector<std::uint32_t>& ids = known_[connection];
    while (ids.size() <= pair)
      ids.push_back(
          topology.choose_id(connection, from, to, 0, static_cast<std::uint32_t>(ids.size())));
    return ids[pair];
  }

 private:
  std::unordered_map<RoutedConnection, std::vector<std::uint32_t>, RoutedConnection::Hash> known_;
};

}  // namespace ghostrank
