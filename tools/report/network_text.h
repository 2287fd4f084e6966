// The load of the modelled links as rows of a table.
//
// Threading: pure.
#pragma once

#include <vector>

#include "emulator/result/result.h"
#include "tools/text/table.h"

namespace ghostrank {

// The topology and routing, one fact per tier, and the three hottest links; empty when no links are
// modelled.
std::vector<Fact> network_facts(const std::optional<NetworkReport>& network);

}  // namespace ghostrank
