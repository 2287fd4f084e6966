// In virtual time: the helpers that may take the notes that have queued at their NIC one after the
// other, ahead of the clock, and when each of them has to stop.
//
//   notes at the NIC of a server, by the time when each is in:   3   5   5   9  12
//   notes that the server takes at time 3:                       3   5   5   9
//   A note that comes later is in at 12 or later, so the server takes that of 12 when it is due.
//
// That changes nothing: a NIC lets notes in in the order in which they come, so none can still come
// between two of them, and nothing else happens to a helper that has a node to itself but timers of
// its own, for which it stops. What it sends is no earlier than the note that it answers. So many
// notes that meet at a server cost the queue of events little, and lie one behind the other in
// memory.
//
// Threading: one owner (a shard).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "profiles/units.h"

namespace ghostrank {

class HelperBacklogs {
 public:
  // `alone`: by helper of the shard, whether nobody else is on its node; none runs ahead where it
  // is empty. Local indices of helpers begin at `first`.
  void begin(std::uint32_t first, const std::vector<bool>& alone) {
    first_ = first;
    helpers_.assign(alone.size(), {});
    for (std::size_t i = 0; i < alone.size(); ++i) helpers_[i].runs_ahead = alone[i];
  }
  bool runs_ahead(std::uint32_t local) const {
    return local - first_ < helpers_.size() && helpers_[local - first_].runs_ahead;
  }
  // A timer of the party will fire at `at`, or has fired.
  void armed(std::uint32_t local, Picoseconds at) {
    if (runs_ahead(local)) helpers_[local - first_].timers.push(at);
  }
  void fired(std::uint32_t local) {
    if (runs_ahead(local)) helpers_[local - first_].timers.pop();
  }
  // Of one that runs ahead: when its next timer fires.
  Picoseconds next_timer(std::uint32_t local) const {
    const Timers& timers = helpers_[local - first_].timers;
    return timers.empty() ? std::numeric_limits<Picoseconds>::max() : timers.top();
  }

 private:
  using Timers = std::priority_queue<Picoseconds, std::vector<Picoseconds>, std::greater<>>;
  struct Helper {
    bool runs_ahead = false;
    Timers timers;
  };

  std::uint32_t first_ = 0;
  std::vector<Helper> helpers_;
};

}  // namespace ghostrank
