// Lists of ranks as short text: runs "first", "first-last" or "first-last/stride", separated by
// blanks, in the order of the list.
//
//   0 1 2 3 8 16 24      0-3 8-24/8
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/common/number.h"

namespace ghostrank {

std::string runs_of(std::span<const WorldRank> ranks);

// Empty if the text is not such a list, names a rank above `ranks` - 1, or has more than `ranks`
// members.
std::optional<std::vector<WorldRank>> parse_runs(std::string_view text, int ranks);

}  // namespace ghostrank
