// What a full ring or network has not taken yet, by lane: first the shards of the process, then the
// flows of this one, then the ways of its packets. A lane's parcels leave in the order in which
// they came; between lanes there is no order.
//
// A lane also counts the messages whose turn at their NIC is to come. They lie in the shard's queue
// of events, and what is kept here for the same lane must not pass them.
//
// Bounds: none of its own; senders are held, and see load(). Threading: one owner (a shard).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "emulator/shard/event.h"

namespace ghostrank {

class Outboxes {
 public:
  void resize(std::size_t lanes) { boxes_.resize(lanes); }

  // Parcels that are kept; messages whose turn is to come. Of all lanes.
  std::size_t kept() const { return kept_; }
  std::size_t turns() const { return turns_; }

  bool empty(int lane) const { return box(lane).parcels.empty(); }
  // Of messages that nobody waits for: those that are waited for hold up their sender instead.
  bool has_turns(int lane) const { return box(lane).turns > 0; }
  // Both of a lane.
  std::size_t load(int lane) const { return box(lane).parcels.size() + box(lane).turns; }

  void keep(int lane, Parcel&& parcel) {
    Box& b = box(lane);
    b.parcels.push_back(std::move(parcel));
    if (!b.listed) waiting_.push_back(lane);
    b.listed = true;
    ++kept_;
  }

  void add_turn(int lane, bool waited_for) {
    ++turns_;
    if (!waited_for) ++box(lane).turns;
  }
  void end_turn(int lane, bool waited_for) {
    --turns_;
    if (!waited_for) --box(lane).turns;
  }

  // Offers what is kept to `take`(lane, parcel), lane by lane until it says false; of what it has
  // taken, `gone` is told the sender: parcel.event's flight and actor. Either may keep more. True:
  // something has gone.
  template <typename Take, typename Gone>
  bool flush(const Take& take, const Gone& gone) {
    bool any = false;
    retried_.swap(waiting_);  // what goes may let its sender keep more, in this lane or another
    for (const int lane : retried_) {
      Box& b = box(lane);
      while (!b.parcels.empty()) {
        Flight* const flight = b.parcels.front().event.flight;
        const std::uint32_t actor = b.parcels.front().event.actor;
        if (!take(lane, b.parcels.front())) break;
        b.parcels.pop_front();
        --kept_;
        any = true;
        gone(flight, actor);
      }
      b.listed = !b.parcels.empty();
      if (b.listed) waiting_.push_back(lane);
    }
    retried_.clear();
    return any;
  }

 private:
  struct Box {
    std::deque<Parcel> parcels;
    bool listed = false;  // in waiting_, or in retried_ and to be listed anew
    std::uint32_t turns = 0;
  };
  Box& box(int lane) { return boxes_[static_cast<std::size_t>(lane)]; }
  const Box& box(int lane) const { return boxes_[static_cast<std::size_t>(lane)]; }

  std::deque<Box> boxes_;               // stay where they are
  std::vector<int> waiting_, retried_;  // lanes that keep something; those of this pass
  std::size_t kept_ = 0, turns_ = 0;
};

}  // namespace ghostrank
