// NICs as files of a cluster name them: n3.nic1, or all of a node, n3, or of several, n0-7.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string_view>

namespace ghostrank {

struct NamedNics {
  int first_node = 0, last_node = 0;
  std::optional<int> nic;  // of each of these nodes; empty: all
};

// Empty: `name` does not name NICs.
std::optional<NamedNics> nics_named(std::string_view name);

}  // namespace ghostrank
