// Events of many sources, each of which brings its own nearly sorted: a list per source. A list
// takes an event that is no earlier than its last one; `heads` has the first event of every source.
// So a source with a thousand pending events costs no more there than one with a single event.
// Events of one source can also be taken out of turn, before those of others; then the key of the
// source in `heads` is too early, until it becomes the first.
//
//   source 0   3 5 5 9 ...      heads: 2 (source 2), 3 (source 0)
//   source 1
//   source 2   2 7
//
// Bounds: sources are as many as the largest number given; each has a cache line, and blocks of
// events only while it has events. Blocks are kept for reuse until trim(). Threading: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/common/block_store.h"
#include "emulator/shard/events/event_heap.h"
#include "emulator/shard/events/nearly_sorted.h"

namespace ghostrank {

template <typename Event>
class EventSources {
 public:
  // The key of the first event; kLastOfAll: there is none.
  EventKey first() const { return heads_.first().key; }

  // Returns the slot of a new event, which holds old values; null: it is earlier than the source's
  // last one, and belongs elsewhere.
  Event* push(std::uint32_t number, const EventKey& key) {
    if (number >= sources_.size()) [[unlikely]]
      sources_.resize(number + 1);
    Source& source = sources_[number];
    if (source.first == nullptr)
      begin(source, key, number);
    else if (key.before(source.last_key))
      return nullptr;
    else if (source.tail == kBlock)
      lengthen(source);
    source.last_key = key;
    Event* const event = &source.last->events[source.tail++];
    if (source.tail + 1 < kBlock) __builtin_prefetch(event + 2, 1);
    return event;
  }

  // Removes the first event and returns its slot, valid until the next pop() even if others are
  // pushed. `key_of` gives the key of an event that was pushed.
  template <typename KeyOf>
  Event& pop(const KeyOf& key_of) {
    const std::uint32_t number = heads_.first().source;
    Source& source = sources_[number];
    Event& event = take_first(source, 1);
    if (source.first == nullptr)
      heads_.pop();
    else
      heads_.replace_first({key_of(head_of(source)), number});
    settle(key_of);
    return event;
  }

  // Out of turn: removes the first event of the source if it is due before `end` and is not the
  // source's last, and returns its slot, as pop() does; else null. Call settle() before pop() and
  // first().
  Event* pop_early(std::uint32_t number, Picoseconds end) {
    if (time_of(number) >= end) return nullptr;
    Source& source = sources_[number];
    if (source.first == source.last && source.head + 1 == source.tail) return nullptr;
    source.early = true;
    return &take_first(source, kEarlyAhead);
  }
  template <typename KeyOf>
  void settle(const KeyOf& key_of) {
    while (!heads_.empty() && sources_[heads_.first().source].early) {
      const std::uint32_t number = heads_.first().source;
      Source& source = sources_[number];  // it has an event: pop_early() takes no last one
      source.early = false;
      heads_.replace_first_by_far({key_of(head_of(source)), number});
    }
  }
  // When the first event of the source is due; the latest time of all: it has none.
  Picoseconds time_of(std::uint32_t number) const {
    if (number >= sources_.size() || sources_[number].first == nullptr) return kLastOfAll.at;
    return head_of(sources_[number]).t.at;
  }

  // The first event, which the next pop() removes; null: there is none.
  const Event* next() const {
    return heads_.empty() ? nullptr : &head_of(sources_[heads_.first().source]);
  }
  // The key of the event behind it; kLastOfAll: there is none. Prefetches the source of that event,
  // which next() reads once the event is the first one.
  EventKey second() const {
    const Head* const head = heads_.second();
    if (head == nullptr) return kLastOfAll;
    prefetch_source(head->source);
    return head->key;
  }
  // Prefetch for push(): call prefetch_source() well before prefetch_tail().
  void prefetch_source(std::uint32_t number) const {
    if (number < sources_.size()) __builtin_prefetch(&sources_[number], 1);
  }
  void prefetch_tail(std::uint32_t number) const {
    if (number >= sources_.size() || sources_[number].first == nullptr) return;
    const Source& source = sources_[number];
    if (source.tail < kBlock) __builtin_prefetch(&source.last->events[source.tail], 1);
  }

  template <typename Is>
  bool any(const Is& is) const {
    for (const Source& source : sources_) {
      std::uint32_t at = source.head;
      for (const Block* b = source.first; b != nullptr;
           b = b == source.last ? nullptr : b->next, at = 0)
        for (const std::uint32_t end = b == source.last ? source.tail : kBlock; at < end; ++at)
          if (is(b->events[at])) return true;
    }
    return false;
  }

  // Frees memory that holds no pending event.
  void trim() { blocks_.trim(); }

 private:
  static constexpr std::uint32_t kBlock = 15;      // events of a block, which is 1 KiB large
  static constexpr std::uint32_t kEarlyAhead = 3;  // events of one source follow each other at once

  struct Block {
    Block* next;
    alignas(64) std::array<Event, kBlock> events;
  };
  struct alignas(64) Source {
    Block *first = nullptr, *last = nullptr;  // null: no events
    std::uint32_t head = 0, tail = 0;         // in these: the first event; behind the last one
    EventKey last_key{};
    bool early = false;  // events were taken out of turn
  };
  struct Head {
    EventKey key;
    std::uint32_t source;
  };

  [[gnu::noinline]] void begin(Source& source, const EventKey& key, std::uint32_t number) {
    source.first = source.last = blocks_.take();
    source.head = source.tail = 0;
    heads_.push({key, number});
  }
  [[gnu::noinline]] void lengthen(Source& source) {
    source.last->next = blocks_.take();
    source.last = source.last->next;
    source.tail = 0;
  }
  static Event& head_of(const Source& source) { return source.first->events[source.head]; }

  // Fetches the event `ahead` events behind the new first one.
  Event& take_first(Source& source, std::uint32_t ahead) {
    if (spent_ != nullptr) blocks_.give_back(std::exchange(spent_, nullptr));
    Block* const block = source.first;
    Event& event = block->events[source.head++];
    const bool ends = block == source.last && source.head == source.tail;
    if (ends || source.head == kBlock) {
      spent_ = block;
      source.first = ends ? nullptr : block->next;
      source.head = 0;
    }
    if (ends) return event;
    const std::uint32_t at = source.head + ahead;
    if (at < kBlock)
      __builtin_prefetch(&source.first->events[at]);
    else if (source.first != source.last)
      __builtin_prefetch(&source.first->next->events[at - kBlock]);
    if (at + 1 == kBlock) __builtin_prefetch(source.first);  // for `next`
    return event;
  }

  std::vector<Source> sources_;
  NearlySorted<Head> heads_;
  BlockStore<Block> blocks_;
  Block* spent_ = nullptr;  // holds the event that pop() returned last
};

}  // namespace ghostrank
