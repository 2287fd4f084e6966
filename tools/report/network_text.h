// What links carry, in a line or two of a table.
//
// Threading: pure.
#pragma once

#include <vector>

#include "emulator/result/result.h"
#include "tools/text/table.h"

namespace ghostrank {

// One fact for each tier; none without links.
std::vector<Fact> network_facts(const std::optional<NetworkReport>& network);

}  // namespace ghostrank
