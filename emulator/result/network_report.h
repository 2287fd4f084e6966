// What links carry, as a result and a plan tell it: by tier, and those with most to do.
//
// Threading: pure.
#pragma once

#include <optional>
#include <vector>

#include "emulator/network/links.h"
#include "emulator/network/topology.h"
#include "emulator/result/result.h"

namespace ghostrank {

// `counts`: by link, of so many iterations, which take `seconds` together; of a plan they do not
// say how long messages waited. Empty: there are no links.
std::optional<NetworkReport> network_report(const Topology& topology,
                                            const std::vector<LinkCount>& counts, double iterations,
                                            double seconds, bool planned = false);

}  // namespace ghostrank
