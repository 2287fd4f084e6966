// Slurm's short form of many host names: "node[1-3,7],login,rack[0-1]n[08-10]".
//
// Threading: plain values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ghostrank {

inline constexpr std::size_t kMaxListedNodes = 1 << 20;

// The names in order, with the leading zeros of ranges. Empty if `text` has another form or stands
// for more than kMaxListedNodes names.
std::optional<std::vector<std::string>> expand_node_list(std::string_view text);

}  // namespace ghostrank
