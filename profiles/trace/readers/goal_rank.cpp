#include "profiles/trace/readers/goal_rank.h"

#include <utility>

namespace ghostrank {

void add_goal_dependencies(TraceRank& rank, const std::vector<GoalDependency>& all) {
  std::vector<bool> joined(rank.events.size());
  for (const GoalDependency& one : all)
    if (one.on_start) joined[one.on] = true;
  std::vector<TraceEvent> events;
  std::vector<std::uint32_t> index;  // in `events`, by event
  for (std::size_t i = 0; i < joined.size(); ++i) {
    const TraceEvent& event = rank.events[i];
    if (joined[i]) {
      TraceEvent join;
      join.name = event.name;
      join.position = event.position;
      events.push_back(join);
    }
    index.push_back(static_cast<std::uint32_t>(events.size()));
    events.push_back(event);
  }
  std::vector<std::vector<std::uint32_t>> deps(events.size());
  for (const GoalDependency& one : all)
    deps[index[one.event] - joined[one.event]].push_back(index[one.on] - one.on_start);
  for (std::size_t i = 0; i < joined.size(); ++i)
    if (joined[i]) deps[index[i]] = {index[i] - 1};
  for (std::size_t i = 0; i < deps.size(); ++i) {
    events[i].first_dep = static_cast<std::uint32_t>(rank.deps.size());
    events[i].deps = static_cast<std::uint32_t>(deps[i].size());
    rank.deps.insert(rank.deps.end(), deps[i].begin(), deps[i].end());
  }
  rank.events = std::move(events);
}

}  // namespace ghostrank
