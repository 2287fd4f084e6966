// Events in the order of (time, rank, when they were pushed), so that every run with the same seed
// fires them alike.
//
// Most come nearly sorted: what is sent now arrives one latency from now, and so does what is sent
// next. So a few sorted runs take whatever is no earlier than their last; only the rest goes to a
// 4-ary heap of small keys. The runs hold their events, one behind the other in blocks, and can be
// looked at ahead of time. A push gives the place of the event, for the caller to write at once,
// and a pop the place where it lies: an event that is copied while its fields are still on their
// way to the cache holds up everything.
//
// Bounds: ranks below 2^24, 2^40 events in all, 2^32 in the heap at one time; memory grows to the
// most that were pending and is kept until trim().
// Threading: one owner.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
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
      if (run.tail == run.tail_end) lengthen(run);
      Entry& entry = *run.tail++;
      ++run.size;
      entry.key = run.last = key;
      pushed(key, i);
      return entry.event;
    }
    return push_to_heap(key);
  }

  // The same for what will be overtaken by much that is pushed later: it would have a run to
  // itself.
  Event& push_far(Picoseconds at, std::uint32_t rank) { return push_to_heap(key_of(at, rank)); }

  // The first event, where it lies: valid until the next pop, whatever is pushed meanwhile.
  Event& pop() {
    if (spent_) spare_.push_back(std::move(spent_));
    --size_;
    if (first_ == kHeap) return pop_from_heap();
    Run& run = runs_[static_cast<std::size_t>(first_)];
    Event& event = (run.head++)->event;
    --run.size;
    if (run.head == run.head_end) shorten(run);
    if (size_ > 0 && size_ == run.size) {  // nothing anywhere else
      first_key_ = run.head->key;
    } else {
      find_first();
    }
    return event;
  }

  // The event that will come `n` after the first one if nothing comes between; null: unknown.
  const Event* ahead(std::size_t n) const {
    if (first_ == kHeap) return nullptr;
    const Run& run = runs_[static_cast<std::size_t>(first_)];
    if (n >= run.size) return nullptr;
    const auto here = static_cast<std::size_t>(run.head_end - run.head);
    return n < here ? &run.head[n].event : &run.blocks[1]->at(n - here).event;
  }

  // Gives back the memory of what is not pending; for when there is time.
  void trim() { spare_.clear(); }

  void clear() { *this = {}; }

 private:
  static constexpr int kRuns = 4, kHeap = kRuns;
  static constexpr std::size_t kBlock = 32;  // events; more than anybody looks ahead

  struct Key {
    Picoseconds at;
    std::uint64_t tie;
    bool before(const Key& other) const { return at != other.at ? at < other.at : tie < other.tie; }
  };
  struct Entry {
    Key key;
    Event event;
  };
  using Block = std::array<Entry, kBlock>;
  struct Run {
    Entry *head = nullptr, *head_end = nullptr;  // the first entry, and where its block ends
    Entry *tail = nullptr, *tail_end = nullptr;  // behind the last one
    std::size_t size = 0;
    Key last{};
    std::deque<std::unique_ptr<Block>> blocks;
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
      if (run.size == 0 || (any && !run.head->key.before(first_key_))) continue;
      first_ = i;
      first_key_ = run.head->key;
      any = true;
    }
  }

  void lengthen(Run& run) {
    if (spare_.empty()) spare_.push_back(std::make_unique<Block>());
    run.blocks.push_back(std::move(spare_.back()));
    spare_.pop_back();
    run.tail = run.blocks.back()->data();
    run.tail_end = run.tail + kBlock;
    if (run.size == 0) run.head = run.tail, run.head_end = run.tail_end;
  }

  // Its first block holds nothing more than what is being popped.
  void shorten(Run& run) {
    spent_ = std::move(run.blocks.front());
    run.blocks.pop_front();
    if (run.blocks.empty()) {
      run.head = run.head_end = run.tail = run.tail_end = nullptr;
    } else {
      run.head = run.blocks.front()->data();
      run.head_end = run.head + kBlock;
    }
  }

  Event& push_to_heap(const Key& key) {
    const std::uint32_t event = events_.put({});
    heap_.push_back({key, event});
    rise(heap_.size() - 1);
    pushed(key, kHeap);
    return events_[event];
  }

  Event& pop_from_heap() {
    const Slot top = heap_.front();
    heap_.front() = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(0);
    find_first();
    popped_ = events_.take(top.event);
    return popped_;
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
  Pool<Event> events_;            // of the heap
  Event popped_;                  // from there
  std::unique_ptr<Block> spent_;  // where the last one popped lies
  std::vector<std::unique_ptr<Block>> spare_;
  std::uint64_t sequence_ = 0;
};

}  // namespace ghostrank
