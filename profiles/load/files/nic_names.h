// Names of NICs in a cluster's files: n3.nic1; n3, all of a node; n0-7, all of several nodes.
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
