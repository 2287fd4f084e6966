// Events in the order of (time, rank, when they were pushed), so that every run with the same seed
// fires them alike.
//
// Most come nearly sorted: what is sent now arrives one latency from now, and so does what is sent
// next. So a few sorted runs take whatever is no earlier than their last; only the rest goes to a
// 4-ary heap of small keys. The runs hold their events, one behind the other in memory, and can be
// looked at ahead of time. A push gives the place of the event, for the caller to write at once: an
// event that is copied while its fields are still on their way to the cache holds up everything.
//
// Bounds: ranks below 2^24, 2^40 events in all, 2^32 in the heap at one time; memory grows to the
// most that were pending and is kept until trim().
// Threading: one owner.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/pool.h"
#include "profiles/units.h"

namespace ghostrank {

template <typename Event>
class TimerQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  Picoseconds next() const { return first_key_.at; }

  // The place of an event; what it holds is old. Valid until the next push or pop.
  Event& push(Picoseconds at, std::uint32_t rank) {
    const Key key = key_of(at, rank);
    for (int i = 0; i < kRuns; ++i) {
      Run& run = runs_[static_cast<std::size_t>(i)];
      if (run.size > 0 && key.before(run.last)) continue;
      if (run.size > run.mask) grow(run);
      Entry& entry = run.at(run.size++);
      entry.key = run.last = key;
      pushed(key, i);
      return entry.event;
    }
    return push_to_heap(key);
  }

  // The same for what will be overtaken by much that is pushed later: it would have a run to
  // itself.
  Event& push_far(Picoseconds at, std::uint32_t rank) { return push_to_heap(key_of(at, rank)); }

  Event pop() {
    --size_;
    if (first_ == kHeap) return pop_from_heap();
    Run& run = runs_[static_cast<std::size_t>(first_)];
    const Event event = run.at(0).event;
    run.head = (run.head + 1) & run.mask;
    --run.size;
    if (size_ > 0 && size_ == run.size) {  // nothing anywhere else
      first_key_ = run.at(0).key;
    } else {
      find_first();
    }
    return event;
  }

  // The event that will come `n` after the first one if nothing comes between; null: unknown.
  const Event* ahead(std::size_t n) const {
    if (first_ == kHeap) return nullptr;
    const Run& run = runs_[static_cast<std::size_t>(first_)];
    return n < run.size ? &run.at(n).event : nullptr;
  }

  // Gives back the memory of runs that are empty; for when there is time.
  void trim() {
    for (Run& run : runs_) {
      if (run.size == 0 && run.mask >= kWorthIt) run = {};
    }
  }

  void clear() { *this = {}; }

 private:
  static constexpr int kRuns = 4, kHeap = kRuns;
  static constexpr std::size_t kWorthIt = 4096;  // to give back

  struct Key {
    Picoseconds at;
    std::uint64_t tie;
    bool before(const Key& other) const { return at != other.at ? at < other.at : tie < other.tie; }
  };
  struct Entry {
    Key key;
    Event event;
  };
  struct Run {  // a ring of a power of two
    std::vector<Entry> ring = std::vector<Entry>(16);
    std::size_t head = 0, size = 0, mask = 15;
    Key last{};
    Entry& at(std::size_t i) { return ring[(head + i) & mask]; }
    const Entry& at(std::size_t i) const { return ring[(head + i) & mask]; }
  };
  struct Slot {
    Key key;
    std::uint32_t event;  // in events_
  };

  Key key_of(Picoseconds at, std::uint32_t rank) {
    return {at, (static_cast<std::uint64_t>(rank) << 40) | sequence_++};
  }

  void pushed(const Key& key, int where) {
    if (size_++ > 0 && !key.before(first_key_)) return;
    first_ = where;
    first_key_ = key;
  }

  void find_first() {
    bool any = !heap_.empty();
    first_ = kHeap;
    if (any) first_key_ = heap_.front().key;
    for (int i = 0; i < kRuns; ++i) {
      const Run& run = runs_[static_cast<std::size_t>(i)];
      if (run.size == 0 || (any && !run.at(0).key.before(first_key_))) continue;
      first_ = i;
      first_key_ = run.at(0).key;
      any = true;
    }
  }

  static void grow(Run& run) {
    std::vector<Entry> larger(2 * run.ring.size());
    for (std::size_t i = 0; i < run.size; ++i) larger[i] = run.at(i);
    run.ring = std::move(larger);
    run.head = 0;
    run.mask = run.ring.size() - 1;
  }

  Event& push_to_heap(const Key& key) {
    const std::uint32_t event = events_.put({});
    heap_.push_back({key, event});
    rise(heap_.size() - 1);
    pushed(key, kHeap);
    return events_[event];
  }

  Event pop_from_heap() {
    const Slot top = heap_.front();
    heap_.front() = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(0);
    find_first();
    return events_.take(top.event);
  }

  void rise(std::size_t i) {
    const Slot slot = heap_[i];
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!slot.key.before(heap_[parent].key)) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = slot;
  }

  void sink(std::size_t i) {
    const Slot slot = heap_[i];
    const std::size_t n = heap_.size();
    for (std::size_t child = 4 * i + 1; child < n; child = 4 * i + 1) {
      std::size_t least = child;
      const std::size_t end = child + 4 < n ? child + 4 : n;
      for (std::size_t c = child + 1; c < end; ++c) {
        if (heap_[c].key.before(heap_[least].key)) least = c;
      }
      if (!heap_[least].key.before(slot.key)) break;
      heap_[i] = heap_[least];
      i = least;
    }
    heap_[i] = slot;
  }

  std::size_t size_ = 0;
  int first_ = kHeap;  // where the first event is: a run, or the heap
  Key first_key_{};
  std::array<Run, kRuns> runs_;
  std::vector<Slot> heap_;
  Pool<Event> events_;  // of the heap
  std::uint64_t sequence_ = 0;
};

}  // namespace ghostrank
