// The flights of a shard, in use or not. One that has ended is used anew, the last one first, with
// its actors' memory: what begins needs none.
//
// Bounds: memory grows to the most that were in use at one time and is kept. Flights stay where
// they are. Threading: one owner (a shard).
#pragma once

#include <deque>
#include <memory>

#include "emulator/shard/rank.h"

namespace ghostrank {

class Flights {
 public:
  // As it was left: the caller sets what it reads.
  Flight& take() {
    Flight& f = free_ ? *free_ : *all_.emplace_back(std::make_unique<Flight>());
    free_ = f.next;
    return f;
  }

  // It is no rank's any more; no message finds it.
  void give_back(Flight& f) {
    f.group = kNil;
    f.next = free_;
    free_ = &f;
  }

 private:
  std::deque<std::unique_ptr<Flight>> all_;  // each beside its actors
  Flight* free_ = nullptr;                   // by Flight::next
};

}  // namespace ghostrank
