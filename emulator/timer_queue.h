// Events in the order of (time, rank, when they were pushed), so that every run with the same seed
// fires them alike; or of (time, when they were pushed). They keep time, rank and number
// themselves: Event::t.at, rank and order.
//
// Most come nearly sorted: what is sent now arrives one latency from now, and so does what is sent
// next. So a few sorted runs take whatever is no earlier than their last; only the rest goes to a
// 4-ary heap of small keys. The runs hold their events, one behind the other in blocks, and can be
// looked at ahead of time. A push gives the place of the event, for the caller to write at once all
// but those three, and a pop the place where it lies: an event that is copied while its fields are
// still on their way to the cache holds up everything.
//
// Bounds: ranks below 2^24, 2^40 events in all; of two of one time, fewer than 2^32 are pushed
// between them. Memory grows to the most that were pending and is kept until trim().
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
  enum class Ties { by_rank, as_they_come };
  explicit TimerQueue(Ties ties = Ties::by_rank) : ties_(ties) {}

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  Picoseconds next() const { return first_at_; }

  // The place of an event; what else it holds is old. Valid until the next push or pop.
  Event& push(Picoseconds at, std::uint32_t rank) {
    const Key key = new_key(at, rank);
    for (int i = 0; i < kRuns; ++i) {
      Run& run = runs_[static_cast<std::size_t>(i)];
      if (run.size > 0 && key.before(run.last)) continue;
      if (run.tail == run.tail_end) lengthen(run);
      if (run.size++ == 0) note_first(key, i);  // else it is behind others
      ++size_;
      run.last = key;
      return marked(*run.tail++, at, rank);
    }
    return push_to_heap(key, rank);
  }

  // The same for what will be overtaken by much that is pushed later: it would have a run to
  // itself.
  Event& push_far(Picoseconds at, std::uint32_t rank) {
    return push_to_heap(new_key(at, rank), rank);
  }

  // The first event, where it lies: valid until the next pop, whatever is pushed meanwhile.
  Event& pop() {
    if (spent_) spare_.push_back(std::move(spent_));
    --size_;
    if (first_ == kHeap) return pop_from_heap();
    Run& run = runs_[static_cast<std::size_t>(first_)];
    Event& event = *run.head++;
    --run.size;
    if (run.head == run.head_end) shorten(run);
    if (size_ > 0 && size_ == run.size) {  // nothing anywhere else
      first_at_ = run.head->t.at;
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
    return n < here ? &run.head[n] : &run.blocks[1]->events[n - here];
  }

  // Gives back the memory of what is not pending; for when there is time.
  void trim() { spare_.clear(); }

  void clear() { *this = TimerQueue(ties_); }

 private:
  static constexpr int kRuns = 4, kHeap = kRuns;
  static constexpr std::size_t kBlock = 32;  // events; more than anybody looks ahead

  struct Key {
    Picoseconds at;
    std::uint64_t tie;
    bool before(const Key& other) const { return at != other.at ? at < other.at : tie < other.tie; }
  };
  struct alignas(64) Block {
    std::array<Event, kBlock> events;
  };
  struct Run {
    Event *head = nullptr, *head_end = nullptr;  // the first event, and where its block ends
    Event *tail = nullptr, *tail_end = nullptr;  // behind the last one
    std::size_t size = 0;
    Key last{};
    std::deque<std::unique_ptr<Block>> blocks;
  };
  struct Slot {
    Key key;
    std::uint32_t event;  // in events_
  };

  Key new_key(Picoseconds at, std::uint32_t rank) { return key_of(at, rank, ++pushed_); }
  Key key_of(Picoseconds at, std::uint32_t rank, std::uint64_t number) const {
    return {at, (ties_ == Ties::by_rank ? static_cast<std::uint64_t>(rank) << 40 : 0) | number};
  }
  // An event has the last digits of its number; it is one of the latest.
  Key key_of(const Event& e) const {
    return key_of(e.t.at, e.rank, pushed_ - static_cast<std::uint32_t>(pushed_ - e.order));
  }
  Event& marked(Event& event, Picoseconds at, std::uint32_t rank) const {
    event.t.at = at;
    event.rank = rank;
    event.order = static_cast<std::uint32_t>(pushed_);
    return event;
  }

  // A run, or the heap, is about to get what may be the first event of all.
  void note_first(Key key, int where) {
    if (size_ > 0 && (key.at > first_at_ || !key.before(first_key()))) return;
    first_ = where;
    first_at_ = key.at;
  }
  Key first_key() const {
    return first_ == kHeap ? heap_.front().key
                           : key_of(*runs_[static_cast<std::size_t>(first_)].head);
  }

  void find_first() {
    Key first{};
    bool any = !heap_.empty();
    first_ = kHeap;
    if (any) first = heap_.front().key;
    for (int i = 0; i < kRuns; ++i) {
      const Run& run = runs_[static_cast<std::size_t>(i)];
      if (run.size == 0) continue;
      const Key key = key_of(*run.head);
      if (any && !key.before(first)) continue;
      first_ = i;
      first = key;
      any = true;
    }
    first_at_ = first.at;
  }

  [[gnu::noinline]] void lengthen(Run& run) {
    if (spare_.empty()) spare_.push_back(std::make_unique<Block>());
    run.blocks.push_back(std::move(spare_.back()));
    spare_.pop_back();
    run.tail = run.blocks.back()->events.data();
    run.tail_end = run.tail + kBlock;
    if (run.size == 0) run.head = run.tail, run.head_end = run.tail_end;
  }

  // Its first block holds nothing more than what is being popped.
  [[gnu::noinline]] void shorten(Run& run) {
    spent_ = std::move(run.blocks.front());
    run.blocks.pop_front();
    if (run.blocks.empty()) {
      run.head = run.head_end = run.tail = run.tail_end = nullptr;
    } else {
      run.head = run.blocks.front()->events.data();
      run.head_end = run.head + kBlock;
      if (run.blocks.size() > 1)
        for (const Event& e : run.blocks[1]->events) __builtin_prefetch(&e);
    }
  }

  [[gnu::noinline]] Event& push_to_heap(Key key, std::uint32_t rank) {
    note_first(key, kHeap);
    ++size_;
    const std::uint32_t event = events_.put(Event{});
    heap_.push_back({key, event});
    rise(heap_.size() - 1);
    return marked(events_[event], key.at, rank);
  }

  [[gnu::noinline]] Event& pop_from_heap() {
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
  Picoseconds first_at_ = 0;
  std::array<Run, kRuns> runs_;
  std::vector<Slot> heap_;
  Pool<Event> events_;            // of the heap
  Event popped_;                  // from there
  std::unique_ptr<Block> spent_;  // where the last one popped lies
  std::vector<std::unique_ptr<Block>> spare_;
  std::uint64_t pushed_ = 0;
  Ties ties_;
};

}  // namespace ghostrank
