// The nodes of ranks that fill one node after the other.
#pragma once

#include <cstdint>
#include <vector>

namespace ghostrank::testing {

inline std::vector<std::int32_t> nodes_of(int size, int ranks_per_node) {
  std::vector<std::int32_t> node_of;
  for (int r = 0; r < size; ++r) node_of.push_back(r / ranks_per_node);
  return node_of;
}

}  // namespace ghostrank::testing
