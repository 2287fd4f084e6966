// A 4-ary min-heap of small keys over a pool of events, ordered by (time, rank, sequence): the
// order in which events fire is the same in every run with the same seed.
//
// Bound: 2^32 events; memory grows to the largest number pending and is kept.
// Threading: one owner.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "profiles/units.h"

namespace ghostrank {

template <typename Event>
class TimerQueue {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  Picoseconds next() const { return heap_.front().at; }

  void push(Picoseconds at, std::uint32_t rank, Event event) {
    std::uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(events_.size());
      events_.push_back(std::move(event));
    } else {
      slot = free_.back();
      free_.pop_back();
      events_[slot] = std::move(event);
    }
    heap_.push_back({at, (static_cast<std::uint64_t>(rank) << 32) | sequence_++, slot});
    rise(heap_.size() - 1);
  }

  Event pop() {
    const Key top = heap_.front();
    heap_.front() = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(0);
    free_.push_back(top.slot);
    return std::move(events_[top.slot]);
  }

  void clear() {
    heap_.clear();
    free_.clear();
    events_.clear();
  }

 private:
  struct Key {
    Picoseconds at;
    std::uint64_t tie;
    std::uint32_t slot;
    bool before(const Key& other) const { return at != other.at ? at < other.at : tie < other.tie; }
  };

  void rise(std::size_t i) {
    const Key key = heap_[i];
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!key.before(heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = key;
  }

  void sink(std::size_t i) {
    const Key key = heap_[i];
    const std::size_t n = heap_.size();
    for (std::size_t first = 4 * i + 1; first < n; first = 4 * i + 1) {
      std::size_t least = first;
      const std::size_t end = first + 4 < n ? first + 4 : n;
      for (std::size_t c = first + 1; c < end; ++c) {
        if (heap_[c].before(heap_[least])) least = c;
      }
      if (!heap_[least].before(key)) break;
      heap_[i] = heap_[least];
      i = least;
    }
    heap_[i] = key;
  }

  std::vector<Key> heap_;
  std::vector<Event> events_;
  std::vector<std::uint32_t> free_;
  std::uint32_t sequence_ = 0;
};

}  // namespace ghostrank
