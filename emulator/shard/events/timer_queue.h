// A queue of events, ordered by (time, rank, push), so that every run with the same seed fires them
// alike; or by (time, push). It keeps time, rank and push number in Event::t.at, rank and order.
//
// Most events come nearly sorted: a message sent now arrives one latency from now, and so does the
// next. A few sorted runs therefore take each event that is no earlier than their last one. The
// rest goes to bins (event_bins.h), to wide ones where those do not reach, and to a heap where
// neither do. Far events go to the wide bins, too, or to a heap of their own, to keep the other one
// low. A heap is for few events: of thousands each pop touches many that are not in the cache, and
// it cannot tell what comes next. A run is a list of blocks of events, so the caller
// can look ahead and prefetch. push() returns the slot of the event for the caller to fill at once
// (all but those three fields), and pop() returns the slot where it lies: copying an event while
// its stores are still on their way to the cache would stall.
//
// Bounds: ranks below 2^24, 2^40 events in all, and fewer than 2^32 pushes between two events of
// one time. Memory grows to the most that were pending and is kept until trim(). Threading: one
// owner.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/shard/events/event_bins.h"
#include "emulator/shard/events/event_heap.h"
#include "emulator/shard/events/event_sources.h"
#include "profiles/units.h"

namespace ghostrank {

template <typename Event>
class TimerQueue {
 public:
  enum class Ties { by_rank, as_they_come };
  // `bin`: the width of a bin, a part of the least time from an event to the next that it causes;
  // 0: no bins.
  explicit TimerQueue(Ties ties = Ties::by_rank, Picoseconds bin = 0)
      : ties_(ties),
        bins_(bin, ties == Ties::by_rank),
        far_bins_(ties == Ties::by_rank ? kFarBin : 0, true) {}

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  Picoseconds next() {
    know_first();
    return first_of_[first_].at;
  }

  // Returns the slot of a new event; its other fields hold old values. Valid until the next push or
  // pop.
  Event& push(Picoseconds at, std::uint32_t rank) {
    const EventKey key = new_key(at, rank);
    for (std::size_t i = 0; i < kRuns; ++i) {
      Run& run = runs_[i];
      if (key.before(run.last)) continue;
      if (run.tail == run.tail_end) lengthen(run);
      if (run.size++ == 0) note_first(key, i);  // else it is behind others
      ++size_;
      run.last = key;
      return marked(*run.tail++, at, rank);
    }
    return push_unsorted(key, rank);
  }

  // For far deadlines: kept out of the sorted runs, which they would block.
  Event& push_far(Picoseconds at, std::uint32_t rank) {
    const EventKey key = new_key(at, rank);
    if (size_ >= kMany)
      if (Event* const event = push_to_far_bin(key, rank)) return *event;
    return push_to_heap(kFar, key, rank);
  }

  // For sources, numbered from 0, each of which brings its own events nearly sorted.
  Event& push_from(std::uint32_t source, Picoseconds at, std::uint32_t rank) {
    const EventKey key = new_key(at, rank);
    Event* const event = sources_.push(source, key);
    if (event == nullptr) return push_to_heap(kNear, key, rank);
    if (key.before(first_of_[kNear])) {
      near_has_source_ = true;
      note_first(key, kNear);
    }
    ++size_;
    return marked(*event, at, rank);
  }

  // Removes the first event and returns its slot, valid until the next pop even if others are
  // pushed.
  Event& pop() {
    know_first();
    now_ = first_of_[first_].at;
    --size_;
    Event& event = first_ < kRuns         ? pop_from_run()
                   : first_ == kBinned    ? pop_from_bin(bins_)
                   : first_ == kFarBinned ? pop_from_bin(far_bins_)
                                          : pop_from_heap();
    know_first();
    return event;
  }

  // Returns whether the first event has this time and rank. Requires Ties::by_rank. Compares both
  // without a branch in between, because equal times are frequent and unpredictable, but seldom
  // come with equal ranks.
  bool first_is_at(Picoseconds at, std::uint32_t rank) const {
    const EventKey& first = first_of_[first_];
    return (static_cast<std::uint64_t>(first.at ^ at) | (first.tie >> 40 ^ rank)) == 0;
  }

  // The rank of the first event; kNil: unknown.
  std::uint32_t first_rank() const { return rank_in(first_of_[first_]); }

  // Returns the event `n` events behind the first one, unless others come between; null: unknown.
  [[gnu::always_inline]] const Event* ahead(std::size_t n) const {
    if (first_ == kBinned) return bins_.ahead(n);
    if (first_ == kFarBinned) return far_bins_.ahead(n);
    if (first_ >= kRuns) return nullptr;
    const Run& run = runs_[first_];
    if (n >= run.size) return nullptr;
    const auto here = static_cast<std::size_t>(run.head_end - run.head);
    return n < here ? &run.head[n] : &run.blocks[1]->events[n - here];
  }

  // Out of turn: removes the first event of a source if it is due before `end` and is not the last
  // of the source, and returns its slot, as pop() does; else null. Call settle() before any other
  // function but pushes.
  Event* pop_early(std::uint32_t source, Picoseconds end) {
    Event* const event = sources_.pop_early(source, end);
    if (event != nullptr) --size_;
    return event;
  }
  void settle() {
    sources_.settle([this](const Event& e) { return key_of(e); });
    note_first_near();
  }
  // When the first event of a source is due; the latest time of all: it has none.
  Picoseconds time_of(std::uint32_t source) const { return sources_.time_of(source); }

  // Whenever an event of a source fires, calls `look` with the next event of all sources and with
  // the rank of that behind it (kNil: unknown), so that the caller can prefetch what they will
  // touch. Until clear().
  using Look = void (*)(const void* caller, const Event& next, std::uint32_t second);
  void look_ahead(Look look, const void* caller) { look_ = look, caller_ = caller; }

  // Prefetch for push_from(): call prefetch_source() well before prefetch_tail().
  void prefetch_source(std::uint32_t source) const { sources_.prefetch_source(source); }
  void prefetch_tail(std::uint32_t source) const { sources_.prefetch_tail(source); }

  // Whether is(event) holds for a pending event; looks at all of them until it has found one.
  template <typename Is>
  bool any(const Is& is) const {
    for (const Run& run : runs_) {
      const Event* at = run.head;
      const Event* end = run.head_end;
      std::size_t block = 0;
      for (std::size_t left = run.size; left > 0; --left) {
        if (at == end) {
          at = run.blocks[++block]->events.data();
          end = at + kBlock;
        }
        if (is(*at++)) return true;
      }
    }
    return heaps_[0].any(is) || heaps_[1].any(is) || sources_.any(is) || bins_.any(is) ||
           far_bins_.any(is);
  }

  // Frees the blocks that hold no pending event. Call it when there is time.
  void trim() {
    spare_.clear();
    sources_.trim();
    bins_.trim();
    far_bins_.trim();
  }

  void clear() { *this = TimerQueue(ties_, bins_.width()); }

 private:
  // An event is in a run, a heap, a bin or a source. Runs, heaps and the bins are numbered as
  // queues; the near heap's queue has the sources, too.
  static constexpr std::size_t kRuns = 4, kNear = kRuns, kFar = kRuns + 1, kBinned = kRuns + 2,
                               kFarBinned = kRuns + 3, kQueues = kRuns + 4;
  static constexpr Picoseconds kFarBin = Picoseconds{1} << 26;  // 67 us; its bins reach 0.27 s
  static constexpr std::size_t kMany = 512;  // with fewer events a heap is as fast as bins
  static constexpr std::size_t kBlock = 32;  // events per block; more than callers look ahead

  struct alignas(64) Block {
    std::array<Event, kBlock> events;
  };
  struct Run {
    Event *head = nullptr, *head_end = nullptr;  // the first event; the end of its block
    Event *tail = nullptr, *tail_end = nullptr;  // behind the last event; the end of its block
    std::size_t size = 0;
    EventKey last = kFirstOfAll;
    std::deque<std::unique_ptr<Block>> blocks;
  };
  EventKey new_key(Picoseconds at, std::uint32_t rank) { return key_of(at, rank, ++pushed_); }
  EventKey key_of(Picoseconds at, std::uint32_t rank, std::uint64_t number) const {
    return {at, (ties_ == Ties::by_rank ? static_cast<std::uint64_t>(rank) << 40 : 0) | number};
  }
  std::uint32_t rank_in(const EventKey& key) const {  // kNil: it does not tell
    const bool tells = ties_ == Ties::by_rank && key.tie != kLastOfAll.tie;
    return tells ? static_cast<std::uint32_t>(key.tie >> 40) : kNil;
  }
  // Event::order holds the low 32 bits of the push number, which is one of the latest.
  EventKey key_of(const Event& e) const {
    return key_of(e.t.at, e.rank, pushed_ - static_cast<std::uint32_t>(pushed_ - e.order));
  }
  Event& marked(Event& event, Picoseconds at, std::uint32_t rank) const {
    event.t.at = at;
    event.rank = rank;
    event.order = static_cast<std::uint32_t>(pushed_);
    return event;
  }

  // Notes that the event about to enter this run or heap becomes its first.
  void note_first(EventKey key, std::size_t queue) {
    const EventKey first = first_of_[first_];
    first_of_[queue] = key;
    if (key.before(first)) {
      if (queue != first_) others_ = first, first_ = queue;
    } else if (key.before(others_)) {
      others_ = key;
    }
  }

  // Notes that `key` is the first one now of the queue that has had the first of all. It mostly is
  // that again.
  void note_next(EventKey key) {
    first_of_[first_] = key;
    if (!key.before(others_)) find_first();
  }

  void find_first() {
    static_assert(kQueues == 8);
    const auto earlier = [this](std::size_t a, std::size_t b) {
      return first_of_[b].before(first_of_[a]) ? b : a;
    };
    first_ = earlier(earlier(earlier(0, 1), earlier(2, 3)), earlier(earlier(4, 5), earlier(6, 7)));
    others_ = kLastOfAll;
    for (std::size_t queue = 0; queue < kQueues; ++queue)
      if (queue != first_ && first_of_[queue].before(others_)) others_ = first_of_[queue];
  }
  // Of a bin that is not sorted only the begin is known; no event of the bin is earlier.
  void know_first() {
    for (;;) {
      if (first_ == kBinned && !bins_.is_sorted()) [[unlikely]]
        sort_bin(bins_);
      else if (first_ == kFarBinned && !far_bins_.is_sorted()) [[unlikely]]
        sort_bin(far_bins_);
      else
        return;
    }
  }
  template <typename Bins>
  [[gnu::noinline]] void sort_bin(Bins& bins) {
    bins.sort_next();
    note_next(key_of(bins.first()));
  }

  Event& pop_from_run() {
    if (spent_) spare_.push_back(std::move(spent_));
    Run& run = runs_[first_];
    Event& event = *run.head++;
    --run.size;
    if (run.head == run.head_end) shorten(run);
    if (run.size == 0) run.last = kFirstOfAll;
    note_next(run.size == 0 ? kLastOfAll : key_of(*run.head));
    return event;
  }

  template <typename Bins>
  [[gnu::noinline]] Event& pop_from_bin(Bins& bins) {
    Event& event = bins.pop();
    const Picoseconds begins = bins.begins();
    note_next(bins.is_sorted()         ? key_of(bins.first())
              : begins < kLastOfAll.at ? EventKey{begins, 0}
                                       : kLastOfAll);
    return event;
  }

  [[gnu::noinline]] void lengthen(Run& run) {
    if (spare_.empty()) spare_.push_back(std::make_unique<Block>());
    run.blocks.push_back(std::move(spare_.back()));
    spare_.pop_back();
    run.tail = run.blocks.back()->events.data();
    run.tail_end = run.tail + kBlock;
    if (run.size == 0) run.head = run.tail, run.head_end = run.tail_end;
  }

  // Retires the run's first block, which holds only the event that is being popped.
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

  [[gnu::noinline]] Event& push_unsorted(const EventKey& key, std::uint32_t rank) {
    if (Event* const event = push_to_bin(bins_, kBinned, key, rank)) return *event;
    if (size_ >= kMany)
      if (Event* const event = push_to_far_bin(key, rank)) return *event;
    return push_to_heap(kNear, key, rank);
  }
  [[gnu::noinline]] Event* push_to_far_bin(const EventKey& key, std::uint32_t rank) {
    return push_to_bin(far_bins_, kFarBinned, key, rank);
  }
  template <typename Bins>
  Event* push_to_bin(Bins& bins, std::size_t queue, const EventKey& key, std::uint32_t rank) {
    Event* const event = bins.push(key.at, rank, now_);
    if (event == nullptr) return nullptr;
    ++size_;
    if (!bins.is_sorted() && bins.begins() < first_of_[queue].at)
      note_first({bins.begins(), 0}, queue);
    return &marked(*event, key.at, rank);
  }

  [[gnu::noinline]] Event& push_to_heap(std::size_t queue, EventKey key, std::uint32_t rank) {
    if (key.before(first_of_[queue])) {
      if (queue == kNear) near_has_source_ = false;
      note_first(key, queue);
    }
    ++size_;
    return marked(heaps_[queue - kRuns].push(key), key.at, rank);
  }

  [[gnu::noinline]] Event& pop_from_heap() {
    EventHeap<Event>& heap = heaps_[first_ - kRuns];
    if (first_ == kNear && near_has_source_) return pop_from_source();
    Event& event = heap.pop();
    first_ == kNear ? note_first_near() : note_next(heap.first());
    return event;
  }

  Event& pop_from_source() {
    Event& event = sources_.pop([this](const Event& e) { return key_of(e); });
    if (const Event* next = sources_.next(); look_ != nullptr && next != nullptr)
      look_(caller_, *next, rank_in(sources_.second()));
    note_first_near();
    return event;
  }

  // Notes the first event of the near heap and the sources, which have lost one.
  void note_first_near() {
    const EventKey in_heap = heaps_[0].first(), of_source = sources_.first();
    near_has_source_ = of_source.before(in_heap);
    const EventKey first = near_has_source_ ? of_source : in_heap;
    first_ == kNear ? note_next(first) : void(first_of_[kNear] = first);
  }

  std::size_t size_ = 0;
  std::size_t first_ = 0;                      // queue of the first event of all
  std::array<EventKey, kQueues> first_of_ = {  // first key of every queue
      kLastOfAll, kLastOfAll, kLastOfAll, kLastOfAll,
      kLastOfAll, kLastOfAll, kLastOfAll, kLastOfAll};
  EventKey others_ = kLastOfAll;  // no later than the first key of any queue but first_
  bool near_has_source_ = false;  // the first event of kNear is a source's, not in the heap
  std::array<Run, kRuns> runs_;
  std::array<EventHeap<Event>, 2> heaps_;
  std::unique_ptr<Block> spent_;  // holds the event that pop() returned last
  std::vector<std::unique_ptr<Block>> spare_;
  std::uint64_t pushed_ = 0;
  Picoseconds now_ = 0;  // when the event was due that pop() returned last
  Ties ties_;
  EventBins<Event> bins_;
  EventBins<Event, 26> far_bins_;
  EventSources<Event> sources_;
  Look look_ = nullptr;
  const void* caller_ = nullptr;
};

}  // namespace ghostrank
