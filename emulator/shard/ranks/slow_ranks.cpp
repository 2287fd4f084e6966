#include "emulator/shard/ranks/slow_ranks.h"

#include <cmath>

namespace ghostrank {
namespace {

bool lasts_at(const JobEvent& event, Picoseconds at, std::uint32_t iteration) {
  if (event.iteration)
    return iteration >= *event.iteration && iteration - *event.iteration < event.iterations;
  return at >= event.at && at - event.at < event.lasts;
}

}  // namespace

SlowRanks::SlowRanks(const JobEvents& events) {
  for (const JobEvent& event : events.all)
    for (const WorldRank rank : event.ranks) spells_[rank].push_back(&event);
}

Picoseconds SlowRanks::slowed(WorldRank rank, Picoseconds at, std::uint32_t iteration,
                              Picoseconds duration) const {
  const auto found = spells_.find(rank);
  if (found == spells_.end()) return duration;
  double factor = 1;
  for (const JobEvent* event : found->second)
    if (lasts_at(*event, at, iteration)) factor *= event->factor;
  return factor == 1 ? duration : std::llround(factor * static_cast<double>(duration));
}

}  // namespace ghostrank
