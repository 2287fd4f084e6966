// What can go on now, within the event that made it so. Whoever lets another go on puts it in here
// and returns, in place of a call: nothing is entered while it is at work.
//
// The last one in goes first, so that what something sets free is done before it goes on itself: an
// actor that ends a step puts in itself, then those that may wait for that step. Everything has
// gone before the next event.
//
//   rank      goes round its streams, from one of them on
//   actor     walks its schedule
//   step      the actor has ended a step; goes on with the next
//   waiting   the flight's actors from one of them on: which may begin now
//   call      the call ends, of this flight and then of those behind it
//
// Invariant: a rank is in at most once; a flight that is in has not ended. Threading: one owner (a
// shard).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/common/assert.h"

namespace ghostrank {

struct Flight;

struct Ready {
  enum class What : std::uint8_t { rank, actor, step, waiting, call };
  What what = What::rank;
  std::uint8_t stream = 0;   // of a rank: where it goes on
  bool started = false;      // of a rank: this stream has started something
  std::uint32_t index = 0;   // a rank's local index; an actor's
  Flight* flight = nullptr;  // all but a rank
};

class ReadyQueue {
 public:
  explicit ReadyQueue(std::size_t ranks) : is_in_(ranks) {}

  bool empty() const { return items_.empty(); }

  // It may go on; nothing is changed where it is in already.
  void push_rank(std::uint32_t rank) {
    if (!is_in_[rank]) push_rank_at(rank, 0, false);
  }
  // It goes on where it is, when what its stream has started has been as far as it can.
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
