#include "profiles/trace/readers/goal_rank.h"

namespace ghostrank {

void add_goal_dependencies(TraceRank& rank, const std::vector<GoalDependency>& all) {
  const auto events = static_cast<std::uint32_t>(rank.events.size());
  std::vector<std::vector<std::uint32_t>> deps(events);
  std::vector<std::uint32_t> gate(events, kNoIndex);  // by event: the join that marks its start
  for (const GoalDependency& one : all) {
    if (!one.on_start) {
      deps[one.event].push_back(one.on);
      continue;
    }
    if (gate[one.on] == kNoIndex) {
      gate[one.on] = static_cast<std::uint32_t>(deps.size());
      deps.emplace_back();
      TraceEvent join;
      join.name = rank.events[one.on].name;
      join.position = rank.events[one.on].position;
      rank.events.push_back(join);
    }
    deps[one.event].push_back(gate[one.on]);
  }
  for (std::uint32_t i = 0; i < events; ++i)
    if (gate[i] != kNoIndex) {
      deps[gate[i]] = std::move(deps[i]);
      deps[i] = {gate[i]};
    }
  for (std::size_t i = 0; i < deps.size(); ++i) {
    rank.events[i].first_dep = static_cast<std::uint32_t>(rank.deps.size());
    rank.events[i].deps = static_cast<std::uint32_t>(deps[i].size());
    rank.deps.insert(rank.deps.end(), deps[i].begin(), deps[i].end());
  }
}

}  // namespace ghostrank
