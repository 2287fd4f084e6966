// Events in a 4-ary heap of small keys. The choice of the least child is branch-free, because keys
// are unpredictable and a mispredicted branch costs more than a level of the heap. The code chooses
// an index, because GCC 12 compiles a choice of pointers to branches.
//
// Bounds: memory grows to the most events that were in the heap at one time and is kept. Threading:
// one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "emulator/common/pool.h"
#include "profiles/units.h"

namespace ghostrank {

// Orders by time, then by `tie`, which the queue chooses.
struct EventKey {
  Picoseconds at;
  std::uint64_t tie;

  bool before(const EventKey& other) const { return wide() < other.wide(); }

 private:
  __extension__ using Wide = __int128;
  Wide wide() const { return static_cast<Wide>(at) << 64 | tie; }
};
inline constexpr EventKey kFirstOfAll{std::numeric_limits<Picoseconds>::min(), 0};
inline constexpr EventKey kLastOfAll{std::numeric_limits<Picoseconds>::max(), ~std::uint64_t{0}};

// A 4-ary heap of slots with a `key`, the least first.
template <typename Slot>
class LeastFirst {
 public:
  bool empty() const { return slots_.empty(); }
  const Slot& first() const { return slots_.front(); }
  // The least but for the first; null: there is no other.
  const Slot* second() const {
    const std::size_t end = std::min<std::size_t>(slots_.size(), 5);
    const Slot* least = nullptr;
    for (std::size_t i = 1; i < end; ++i)
      if (least == nullptr || slots_[i].key.before(least->key)) least = &slots_[i];
    return least;
  }
  auto begin() const { return slots_.begin(); }
  auto end() const { return slots_.end(); }

  void push(const Slot& slot) {
    slots_.push_back(slot);
    rise(slots_.size() - 1);
  }
  void pop() {
    const Slot last = slots_.back();
    slots_.pop_back();
    if (!slots_.empty()) sink(last);
  }
  void replace_first(const Slot& slot) { sink(slot); }

 private:
  void rise(std::size_t i) {
    const Slot slot = slots_[i];
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!slot.key.before(slots_[parent].key)) break;
      slots_[i] = slots_[parent];
      i = parent;
    }
    slots_[i] = slot;
  }

  // Puts the slot in place of the first one and restores the order of the heap.
  void sink(const Slot& slot) {
    Slot* const slots = slots_.data();
    const std::size_t n = slots_.size();
    std::size_t at = 0;
    for (std::size_t child = 1; child < n; child = 4 * at + 1) {
      const Slot* const c = slots + child;
      std::size_t least = 0;
      if (child + 3 < n) {
        const std::size_t left = c[1].key.before(c[0].key);
        const std::size_t right = 2 + std::size_t{c[3].key.before(c[2].key)};
        const std::size_t is_right = c[right].key.before(c[left].key);
        least = left ^ ((left ^ right) & (0 - is_right));
      } else {
        for (std::size_t i = 1; child + i < n; ++i)
          if (c[i].key.before(c[least].key)) least = i;
      }
      if (!c[least].key.before(slot.key)) break;
      slots[at] = c[least];
      at = child + least;
    }
    slots[at] = slot;
  }

  std::vector<Slot> slots_;
};

template <typename Event>
class EventHeap {
 public:
  // Returns the key of the first event; kLastOfAll: the heap is empty.
  EventKey first() const { return slots_.empty() ? kLastOfAll : slots_.first().key; }

  // Returns the slot of a new event; the slot holds old values.
  Event& push(const EventKey& key) {
    const std::uint32_t event = events_.put_as_it_is();
    slots_.push({key, event});
    return events_[event];
  }

  // Whether is(event) holds for an event in the heap.
  template <typename Is>
  bool any(const Is& is) const {
    for (const Slot& slot : slots_)
      if (is(events_[slot.event])) return true;
    return false;
  }

  // Removes the first event and returns its slot, which stays valid until the next pop().
  Event& pop() {
    if (popped_ != kNil) events_.drop(popped_);
    popped_ = slots_.first().event;
    slots_.pop();
    if (!slots_.empty()) __builtin_prefetch(&events_[slots_.first().event]);
    return events_[popped_];
  }

 private:
  struct Slot {
    EventKey key;
    std::uint32_t event;  // in events_
  };

  LeastFirst<Slot> slots_;
  Pool<Event> events_;
  std::uint32_t popped_ = kNil;  // slot of the event that pop() returned last; still in use
};

}  // namespace ghostrank
