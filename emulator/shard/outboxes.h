// Parcels that a full ring or network has not taken yet, by lane: first a lane per shard of the
// process, then one per flow of this shard, then one per packet way. Parcels of a lane leave in the
// order in which they came; between lanes there is no order.
//
// A lane also counts the messages that wait for their turn at the NIC. Those lie in the shard's
// event queue, and a parcel of the same lane must not overtake them.
//
// Bounds: none of its own; the shard holds senders, and limits notes by load(). Threading: one
// owner (a shard).
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

  // Over all lanes: parcels kept here; messages that wait for their turn.
  std::size_t kept() const { return kept_; }
  std::size_t turns() const { return turns_; }

  bool empty(int lane) const { return box(lane).parcels.empty(); }
  // Returns whether the lane has messages whose turn is to come and that no actor waits for. An
  // actor that waits for its message sends nothing meanwhile.
  bool has_turns(int lane) const { return box(lane).turns > 0; }
  // Returns how many parcels and how many such messages the lane has, together.
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

  // Offers the kept parcels of each lane to take(lane, parcel), until it returns false; then goes
  // on with the next lane. For each parcel taken calls gone(flight, actor), both the sender's. Both
  // functions may keep more parcels. Returns whether any parcel has gone.
  template <typename Take, typename Gone>
  bool flush(const Take& take, const Gone& gone) {
    bool any = false;
    retried_.swap(waiting_);  // a sender that goes on may keep more, in any lane
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
    bool listed = false;  // is in waiting_, or in retried_ and goes back there
    std::uint32_t turns = 0;
  };
  Box& box(int lane) { return boxes_[static_cast<std::size_t>(lane)]; }
  const Box& box(int lane) const { return boxes_[static_cast<std::size_t>(lane)]; }

  std::deque<Box> boxes_;               // a deque, so that boxes never move
  std::vector<int> waiting_, retried_;  // lanes that keep parcels; those of this pass
  std::size_t kept_ = 0, turns_ = 0;
};

}  // namespace ghostrank
