// In virtual time: what is due at one time at one rank, in the order in which it fires. By sender,
// and each sender's in the order in which it was sent. Not in the order in which it was pushed to
// the queue: what comes from other shards is pushed later, and results must not know of shards.
// What one sender sent over links may come by several ways; it is told apart by its number.
// Threading: one owner (a shard).
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/schedule.h"
#include "emulator/shard/event.h"

namespace ghostrank {

class TiedEvents {
 public:
  struct Tied {
    Rank sender;
    std::uint64_t number;
    Event event;
  };

  void clear() { tied_.clear(); }
  // In the order of the queue. `sender`: kNoRank for the rank's own. `number`: of what went over
  // links, among its sender's; else 0.
  void add(Rank sender, const Event& event, std::uint64_t number = 0) {
    tied_.push_back({sender, number, event});
  }

  // Of one sender and kind, both runs of pushes keep the order in which they were sent.
  std::vector<Tied>& in_order() {
    const auto before = [](const Tied& a, const Tied& b) {
      return std::tuple(a.sender, a.event.kind, a.number, a.event.message) <
             std::tuple(b.sender, b.event.kind, b.number, b.event.message);
    };
    if (tied_.size() > 2)
      std::stable_sort(tied_.begin(), tied_.end(), before);
    else if (tied_.size() == 2 && before(tied_[1], tied_[0]))
      std::swap(tied_[0], tied_[1]);
    return tied_;
  }

 private:
  std::vector<Tied> tied_;
};

}  // namespace ghostrank
