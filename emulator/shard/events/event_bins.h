// Events in bins by time, all of one width: those of a bin are sorted when its time comes, and not
// before. So an event that waits costs nothing however many others wait, and the order of the next
// events is known before they fire: the caller can look ahead and prefetch.
//
//   sorted bin   3 5 5 9    then   17 12 18 14   -   40 36   ...
//                  ^ the first event             bins of width 10
//
// It takes no event of the sorted bin's time or earlier, nor of a time behind the last bin; those
// belong elsewhere.
//
// A bin is a ring of blocks of 7 events. A block begins with what its events are sorted by, so a
// bin is sorted without a look at the events, which are fetched meanwhile.
//
// Bounds: kBins bins; blocks are kept for reuse until trim(). Threading: one owner.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/common/block_store.h"
#include "profiles/units.h"

namespace ghostrank {

// `kMostShift`: no bin is wider than 2^kMostShift ps. Above 20 an event is sorted by a longer
// number.
template <typename Event, int kMostShift = 20>
class EventBins {
 public:
  // `width`: of a bin, made a power of two, at most 2^kMostShift; 0: it takes no events. `by_rank`:
  // events of one time are in the order of their ranks, then of their pushes; else of their pushes.
  EventBins(Picoseconds width, bool by_rank)
      : width_(width), shift_(shift_of(width)), by_rank_(by_rank) {}
  Picoseconds width() const { return width_; }

  // Returns the slot of a new event, which holds old values; null: the event belongs elsewhere. No
  // event that is pushed from here on is due before `now`.
  Event* push(Picoseconds at, std::uint32_t rank, Picoseconds now) {
    if (width_ == 0) return nullptr;
    if (bins_.empty()) bins_.resize(kBins);
    const std::int64_t number = at >> shift_;
    if (!is_sorted()) sorted_ = std::max(sorted_, std::min(now >> shift_, next_ - 1));
    if (number <= sorted_ || number >= sorted_ + kBins) return nullptr;
    Bin& bin = bin_of(number);
    if (bin.in_last == kBlock && !lengthen(bin, number)) return nullptr;
    ++bin.size;
    Block& block = *bin.last;
    block.keys[bin.in_last] = static_cast<Order>(at - (number << shift_)) << kTimeAt |
                              Order{by_rank_ ? rank : 0} << kRankAt;
    return &block.events[bin.in_last++];
  }

  // Whether the first event is known: it is in the sorted bin.
  bool is_sorted() const { return at_ < order_.size(); }
  const Event& first() const { return event_of(order_[at_]); }
  // If no bin is sorted, no event is earlier than this; the latest time of all: no event.
  Picoseconds begins() const {
    return next_ == kNone ? std::numeric_limits<Picoseconds>::max() : next_ << shift_;
  }
  // Sorts the first bin that has events; there is one, and none is sorted.
  void sort_next() {
    for (Block* const block : spent_) blocks_.give_back(block);
    spent_.swap(now_);
    now_.clear();
    Bin& bin = bin_of(next_);
    order_.resize(bin.size);
    slots_.resize(bin.size);
    Block* block = bin.last;
    for (std::uint32_t i = 0; i < bin.size;) {
      block = block->next;
      now_.push_back(block);
      for (std::uint32_t k = 0; k < kBlock && i < bin.size; ++k, ++i) {
        order_[i] = block->keys[k] | i;
        slots_[i] = &block->events[k];
        if (bin.size <= kFetched) __builtin_prefetch(slots_[i], 1);
      }
    }
    if (!std::is_sorted(order_.begin(), order_.end())) std::sort(order_.begin(), order_.end());
    if (bin.size > kFetched)
      for (std::size_t i = 0; i < kFetched; ++i) __builtin_prefetch(&event_of(order_[i]), 1);
    at_ = 0;
    bin = Bin{};
    sorted_ = next_;
    full_[sorted_ % kBins / 64] &= ~(std::uint64_t{1} << sorted_ % 64);
    next_ = find_next();
  }

  // Removes the first event, of the sorted bin, and returns its slot, valid until the next pop.
  Event& pop() {
    if (at_ + kFetched < order_.size()) __builtin_prefetch(&event_of(order_[at_ + kFetched]), 1);
    return event_of(order_[at_++]);
  }
  // The event `n` events behind the first one, if it is sorted; else null.
  const Event* ahead(std::size_t n) const {
    return at_ + n < order_.size() ? &event_of(order_[at_ + n]) : nullptr;
  }

  template <typename Is>
  bool any(const Is& is) const {
    for (std::size_t i = at_; i < order_.size(); ++i)
      if (is(event_of(order_[i]))) return true;
    for (const Bin& bin : bins_) {
      const Block* block = bin.last;
      for (std::uint32_t i = 0; i < bin.size; ++i) {
        if (i % kBlock == 0) block = block->next;
        if (is(block->events[i % kBlock])) return true;
      }
    }
    return false;
  }

  void trim() { blocks_.trim(); }

 private:
  static constexpr std::int64_t kBins = 4096, kNone = std::numeric_limits<std::int64_t>::max();
  static constexpr std::uint32_t kBlock = 7;
  static constexpr std::uint32_t kFetched = 32;  // as many of the next events are in the cache
  // What an event is sorted by, in one number: its time in its bin, its rank, its order there.
  static constexpr int kRankBits = 24, kIndexBits = 20;
  static constexpr int kRankAt = kIndexBits, kTimeAt = kIndexBits + kRankBits;
  static constexpr std::uint32_t kMostInBin = 1u << kIndexBits;
  __extension__ using Wide = unsigned __int128;
  using Order = std::conditional_t<kMostShift + kTimeAt <= 64, std::uint64_t, Wide>;

  struct alignas(64) Block {
    Block* next;  // of the last block of a bin: the first one
    std::array<Order, kBlock> keys;
    std::array<Event, kBlock> events;
  };
  struct Bin {
    Block* last = nullptr;
    std::uint32_t size = 0, in_last = kBlock;  // events; those in the last block
  };

  static int shift_of(Picoseconds width) {
    int shift = 0;
    while (shift < kMostShift && width >> (shift + 1) > 0) ++shift;
    return shift;
  }
  Bin& bin_of(std::int64_t number) { return bins_[static_cast<std::size_t>(number % kBins)]; }
  Event& event_of(Order order) const {
    return *slots_[static_cast<std::uint64_t>(order) % kMostInBin];
  }

  // Adds a block to a bin; false: the bin is full.
  bool lengthen(Bin& bin, std::int64_t number) {
    if (bin.size > kMostInBin - kBlock) return false;
    Block* const block = blocks_.take();
    if (bin.size == 0) {
      block->next = block;
      full_[number % kBins / 64] |= std::uint64_t{1} << number % 64;
      next_ = std::min(next_, number);
    } else {
      block->next = std::exchange(bin.last->next, block);
    }
    bin.last = block;
    bin.in_last = 0;
    return true;
  }

  // Returns the first bin behind the sorted one that has events.
  std::int64_t find_next() const {
    for (std::int64_t from = sorted_ + 1; from < sorted_ + kBins; from = (from / 64 + 1) * 64) {
      const std::uint64_t full = full_[from % kBins / 64] >> from % 64;
      if (full != 0) return from + std::countr_zero(full);
    }
    return kNone;
  }

  Picoseconds width_;
  int shift_;
  bool by_rank_;
  std::vector<Bin> bins_;
  std::array<std::uint64_t, kBins / 64> full_{};  // bit i: bin i has events
  std::int64_t sorted_ = -1;                      // number of the bin that was sorted last
  std::int64_t next_ = kNone;                     // of the first one behind it that has events
  std::vector<Order> order_;                      // of the events of the sorted bin
  std::vector<Event*> slots_;                     // of its events, in the order of their pushes
  std::size_t at_ = 0;                            // in it: the first event that is left
  std::vector<Block*> now_, spent_;  // of the sorted bin; of the one that pop() took from last
  BlockStore<Block> blocks_;
};

}  // namespace ghostrank
