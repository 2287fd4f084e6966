// In virtual time: the events due at one time at one rank, in the order in which they fire: by
// sender, then in the order in which their sender sent them. The order of pushes to the queue does
// not serve, because events from other shards are pushed later and results must not depend on the
// number of shards. Messages that one sender sent over links may come by several paths, so their
// numbers order them. Threading: one owner (a shard).
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/schedule.h"
#include "emulator/shard/events/event.h"

namespace ghostrank {

class TiedEvents {
 public:
  struct Tied {
    WorldParty sender;
    std::uint64_t number;
    Event event;
  };

  void clear() { tied_.clear(); }
  // Adds an event; call in the order of the queue. `sender`: kNoParty for the rank's own events.
  // `number`: of a message over links, among its sender's; else 0.
  void add(WorldParty sender, const Event& event, std::uint64_t number = 0) {
    tied_.push_back({sender, number, event});
  }

  // A stable sort suffices: of one sender and kind, the queue has the events in the order in which
  // they were sent, whether this shard or another pushed them.
  std::vector<Tied>& in_order() {
    const auto before = [](const Tied& a, const Tied& b) {
      return std::tuple(a.sender, a.event.kind, a.number, a.event.message) <
             std::tuple(b.sender, b.event.kind, b.number, b.event.message);
    };
    if (!std::is_sorted(tied_.begin(), tied_.end(), before))  // mostly they are
      std::stable_sort(tied_.begin(), tied_.end(), before);
    return tied_;
  }

 private:
  std::vector<Tied> tied_;
};

}  // namespace ghostrank
