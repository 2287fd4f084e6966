// Which place of the fabric every node of a job takes, as a file of lines:
//
//   0-3 8-11       nodes 0 to 3 at places 8 to 11
//   4,6 0-1        # a comment
//
// Lists of nodes and places are ascending and equally long. Every node has one place.
//
// Errors: Error(usage) with the line. Threading: pure functions, but for the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profiles/input/keys.h"

namespace ghostrank {

// Returns the place of every node. `path` names the file in messages.
std::vector<int> parse_places(std::string_view text, const std::string& path, int nodes,
                              int places);

// Reads the file that the setting names, as given or in the folder `near`.
std::vector<int> read_places(const Setting& placement, const std::string& near, int nodes,
                             int places);

}  // namespace ghostrank
