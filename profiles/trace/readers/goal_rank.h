// What GOAL's text and its binary form share: dependencies of a rank's operations. Threading: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/trace/trace.h"

namespace ghostrank {

struct GoalDependency {
  std::uint32_t event = 0, on = 0;
  bool on_start = false;  // `event irequires on`: waits for all that `on` waits for
};

// Gives the rank's events, which have none yet, their dependencies. Puts a join before each event
// whose start others depend on: the join marks that start.
void add_goal_dependencies(TraceRank& rank, const std::vector<GoalDependency>& all);

// Reads the binary form, as txt2bin of LogGOPSim writes it.
inline constexpr std::string_view kGoalMark("\x7f\x10\0\0\0\0\0\0", 8);  // 4223, its first bytes
Trace import_goal_binary(const std::string& path);

}  // namespace ghostrank
