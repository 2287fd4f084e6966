// Parcels that a full ring or network has not taken yet, by outbox: first one per shard of the
// process, then one per flow of this shard, then one per packet flow, then one per flow to a
// switch. Parcels of an outbox leave in the order in which they came; between outboxes there is no
// order.
//
// An outbox also counts the messages that wait for their turn at the NIC. Those lie in the shard's
// event queue, and a parcel of the same outbox must not overtake them.
//
// Bounds: none of its own; the shard holds senders, and limits notes by load(). Threading: one
// owner (a shard).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "emulator/shard/events/event.h"

namespace ghostrank {

class Outboxes {
 public:
  void resize(std::size_t outboxes) { boxes_.resize(outboxes); }

  // Over all outboxes: parcels kept here; messages that wait for their turn.
  std::size_t kept() const { return kept_; }
  std::size_t turns() const { return turns_; }

  bool empty(int outbox) const { return box(outbox).parcels.empty(); }
  // Returns whether the outbox has messages whose turn is to come and that no actor waits for. An
  // actor that waits for its message sends nothing meanwhile.
  bool has_turns(int outbox) const { return box(outbox).turns > 0; }
  // Returns how many parcels and how many such messages the outbox has, together.
  std::size_t load(int outbox) const { return box(outbox).parcels.size() + box(outbox).turns; }

  void keep(int outbox, Parcel&& parcel) {
    Box& b = box(outbox);
    b.parcels.push_back(std::move(parcel));
    if (!b.listed) waiting_.push_back(outbox);
    b.listed = true;
    ++kept_;
  }

  void add_turn(int outbox, bool waited_for) {
    ++turns_;
    if (!waited_for) ++box(outbox).turns;
  }
  void end_turn(int outbox, bool waited_for) {
    --turns_;
    if (!waited_for) --box(outbox).turns;
  }

  // Offers the kept parcels of each outbox to take(outbox, parcel), until it returns false; then
  // goes on with the next outbox. For each parcel taken calls gone(flight, actor), both the
  // sender's. Both functions may keep more parcels. Returns whether any parcel has gone.
  template <typename Take, typename Gone>
  bool flush(const Take& take, const Gone& gone) {
    bool any = false;
    retried_.swap(waiting_);  // a sender that goes on may keep more, in any outbox
    for (const int outbox : retried_) {
      Box& b = box(outbox);
      while (!b.parcels.empty()) {
        Flight* const flight = b.parcels.front().event.flight;
        const std::uint32_t actor = b.parcels.front().event.actor;
        if (!take(outbox, b.parcels.front())) break;
        b.parcels.pop_front();
        --kept_;
        any = true;
        gone(flight, actor);
      }
      b.listed = !b.parcels.empty();
      if (b.listed) waiting_.push_back(outbox);
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
  Box& box(int outbox) { return boxes_[outbox]; }
  const Box& box(int outbox) const { return boxes_[outbox]; }

  std::deque<Box> boxes_;               // a deque, so that boxes never move
  std::vector<int> waiting_, retried_;  // outboxes that keep parcels; those of this pass
  std::size_t kept_ = 0, turns_ = 0;
};

}  // namespace ghostrank
