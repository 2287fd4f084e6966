// Slots with a `key`, the least first. Most come nearly sorted: if a source sends messages of one
// size, each is due the same time after the one before. A few sorted runs therefore take each slot
// that is no earlier than their last one; the rest goes to a heap.
//
//   run 0   12 12 13 17 19
//   run 1   14 15                 first: the least of the runs' first ones and of the heap's
//   heap    16 21 18
//
// Mostly the next slot comes from where the first one came: then it is before `others_`, and
// nothing else is compared.
//
// Bounds: memory grows to the most slots that were held at one time and is kept. Threading: one
// owner.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "emulator/shard/events/event_heap.h"

namespace ghostrank {

template <typename Slot>
class NearlySorted {
 public:
  bool empty() const { return first().key.at == kLastOfAll.at; }
  // The first one; its key is kLastOfAll if there is none.
  const Slot& first() const { return firsts_[first_]; }
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

  // A ring of mask + 1 slots, a power of two.
  struct Run {
    std::size_t head = 0, size = 0, mask = 15;
    EventKey last = kFirstOfAll;  // of the last slot; kFirstOfAll: there is none
    std::vector<Slot> slots = std::vector<Slot>(mask + 1);

    const Slot& at(std::size_t i) const { return slots[(head + i) & mask]; }
    void push(const Slot& slot) {
      if (size > mask) grow();
      slots[(head + size++) & mask] = slot;
      last = slot.key;
    }
    [[gnu::noinline]] void grow() {
      std::vector<Slot> longer(2 * slots.size());
      for (std::size_t i = 0; i < size; ++i) longer[i] = at(i);
      slots = std::move(longer);
      mask = slots.size() - 1;
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
    if (!slot.key.before(firsts_[i].key)) return;
    firsts_[i] = slot;
    if (i != first_ && slot.key.before(others_)) others_ = slot.key;
  }
  void remove_first() {
    if (first_ == kRuns) {
      heap_.pop();
      firsts_[kRuns] = heap_.empty() ? kNone : heap_.first();
      return;
    }
    Run& run = runs_[first_];
    ++run.head;
    --run.size;
    if (run.size == 0) run.last = kFirstOfAll;
    firsts_[first_] = run.size == 0 ? kNone : run.at(0);
  }
  void find_first() {
    if (!first().key.before(others_)) compare_all();
  }
  [[gnu::noinline]] void compare_all() {
    static_assert(kRuns == 3);
    const auto earlier = [this](std::size_t a, std::size_t b) {
      return firsts_[b].key.before(firsts_[a].key) ? b : a;
    };
    // The second of a tournament lost either the final or the winner's first match.
    const std::size_t a = earlier(0, 1), b = earlier(2, 3);
    first_ = earlier(a, b);
    others_ = firsts_[earlier(a ^ b ^ first_, first_ ^ 1)].key;
  }

  static constexpr Slot kNone{.key = kLastOfAll};
  std::array<Slot, kRuns + 1> firsts_ = {kNone, kNone, kNone, kNone};  // of the runs and the heap
  EventKey others_ = kLastOfAll;  // the least of them but for that of `first_`
  std::size_t first_ = 0;         // the run, or the heap, that has the first slot
  std::array<Run, kRuns> runs_;
  LeastFirst<Slot> heap_;
};

}  // namespace ghostrank
