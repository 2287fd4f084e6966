// Work that can go on within the current event. A function that lets something go on pushes it here
// and returns instead of calling it, so no function is re-entered.
//
// The queue is last in, first out: an actor that ends a step pushes itself, then the actors that
// may wait for that step, so they run before its own next step. The queue is empty before the next
// event fires.
//
//   rank      advances the rank's streams in turn, from one of them on
//   actor     walks its schedule
//   step      goes on with the next step of an actor that has ended one
//   waiting   runs the flight's actors, from one of them on, that may begin now
//   call      ends the call, of this flight and then of its next members
//
// Invariant: a rank is in the queue at most once; a flight in the queue has not ended. Threading:
// one owner (a shard).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "switch/assert.h"

namespace ghostrank {

struct Flight;

struct Ready {
  enum class What : std::uint8_t { rank, actor, step, waiting, call };
  What what = What::rank;
  std::uint8_t stream = 0;   // of a rank: the stream from which it goes on
  bool started = false;      // of a rank: that stream has started a flight
  std::uint32_t index = 0;   // local index of the rank; index of the actor
  Flight* flight = nullptr;  // null for a rank
};

class ReadyQueue {
 public:
  explicit ReadyQueue(std::size_t ranks) : is_in_(ranks) {}

  bool empty() const { return items_.empty(); }

  // Queues a rank that may go on; no effect when it is queued already.
  void push_rank(std::uint32_t rank) {
    if (!is_in_[rank]) push_rank_at(rank, 0, false);
  }
  // Queues a rank to go on at `stream` after the actors that the stream has started.
  void push_rank_again(std::uint32_t rank, std::uint8_t stream) {
    GHOSTRANK_ASSERT(!is_in_[rank]);
    push_rank_at(rank, stream, true);
  }
  void push(Ready::What what, Flight& flight, std::uint32_t actor) {
    items_.push_back({.what = what, .index = actor, .flight = &flight});
  }

  Ready pop() {
    const Ready last = items_.back();
    items_.pop_back();
    if (last.what == Ready::What::rank) is_in_[last.index] = false;
    return last;
  }

 private:
  void push_rank_at(std::uint32_t rank, std::uint8_t stream, bool started) {
    is_in_[rank] = true;
    items_.push_back({Ready::What::rank, stream, started, rank});
  }

  std::vector<Ready> items_;
  std::vector<std::uint8_t> is_in_;  // by rank
};

}  // namespace ghostrank
