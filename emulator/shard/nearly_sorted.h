// Slots with a `key`, the least first, of which most come nearly sorted: sources that send messages
// of one size have their next one due the same time after the last. A few sorted runs therefore
// take each slot that is no earlier than their last one; the rest goes to a heap.
//
//   run 0   12 12 13 17 19
//   run 1   14 15                 first: the least of the runs' first ones and of the heap's
//   heap    16 21 18
//
// Bounds: memory grows to the most slots that were held at one time and is kept. Threading: one
// owner.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "emulator/shard/event_heap.h"

namespace ghostrank {

template <typename Slot>
class NearlySorted {
 public:
  bool empty() const { return keys_[first_].at == kLastOfAll.at; }
  const Slot& first() const { return first_ < kRuns ? runs_[first_].at(0) : heap_.first(); }
  // The slot behind the first one, unless another run's comes between; null: unknown.
  const Slot* second() const {
    if (first_ == kRuns) return heap_.second();
    return runs_[first_].size > 1 ? &runs_[first_].at(1) : nullptr;
  }

  void push(const Slot& slot) {
    insert(slot);
    find_first();
  }
  void pop() {
    remove_first();
    find_first();
  }
  void replace_first(const Slot& slot) {
    remove_first();
    insert(slot);
    find_first();
  }
  // For one that is due long after most: kept out of the runs, which it would block.
  void replace_first_by_far(const Slot& slot) {
    remove_first();
    insert_into(kRuns, slot);
    find_first();
  }

 private:
  static constexpr std::size_t kRuns = 3;

  // A ring, whose slots are a power of two.
  struct Run {
    std::vector<Slot> slots = std::vector<Slot>(16);
    std::size_t head = 0, size = 0;
    EventKey last = kFirstOfAll;  // of the last slot; kFirstOfAll: there is none

    const Slot& at(std::size_t i) const { return slots[(head + i) & (slots.size() - 1)]; }
    void push(const Slot& slot) {
      if (size == slots.size()) grow();
      slots[(head + size++) & (slots.size() - 1)] = slot;
      last = slot.key;
    }
    void grow() {
      std::vector<Slot> longer(2 * slots.size());
      for (std::size_t i = 0; i < size; ++i) longer[i] = at(i);
      slots = std::move(longer);
      head = 0;
    }
  };

  void insert(const Slot& slot) {
    std::size_t i = 0;
    while (i < kRuns && slot.key.before(runs_[i].last)) ++i;
    insert_into(i, slot);
  }
  void insert_into(std::size_t i, const Slot& slot) {
    i < kRuns ? runs_[i].push(slot) : heap_.push(slot);
    if (slot.key.before(keys_[i])) keys_[i] = slot.key;
  }
  void remove_first() {
    if (first_ == kRuns) {
      heap_.pop();
      keys_[kRuns] = heap_.empty() ? kLastOfAll : heap_.first().key;
      return;
    }
    Run& run = runs_[first_];
    ++run.head;
    --run.size;
    if (run.size == 0) run.last = kFirstOfAll;
    keys_[first_] = run.size == 0 ? kLastOfAll : run.at(0).key;
  }
  void find_first() {
    static_assert(kRuns == 3);
    const auto earlier = [this](std::size_t a, std::size_t b) {
      return keys_[b].before(keys_[a]) ? b : a;
    };
    first_ = earlier(earlier(0, 1), earlier(2, 3));
  }

  std::array<Run, kRuns> runs_;
  LeastFirst<Slot> heap_;
  std::array<EventKey, kRuns + 1> keys_ = {kLastOfAll, kLastOfAll, kLastOfAll, kLastOfAll};
  std::size_t first_ = 0;  // the run, or the heap, that has the first slot
};

}  // namespace ghostrank
