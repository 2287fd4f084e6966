// A collective of all ranks as one SVG: who sends to whom. Channels with the same connections share
// a panel. A ring is drawn in its order, a tree from its root down, anything else as a circle of
// ranks.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

inline constexpr int kMostDrawnRanks = 128;

// `node_of`: the emulated node of each rank, which gives its colour; empty: all alike. The group
// has at most kMostDrawnRanks ranks.
std::string schedule_svg(const Schedule& schedule, const std::string& title,
                         const std::vector<std::int32_t>& node_of);

}  // namespace ghostrank
