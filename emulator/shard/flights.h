// The flights of a shard, in use or free. A new collective reuses the flight freed last, with the
// memory of its actors, so that starting one allocates nothing.
//
// Bounds: memory grows to the most flights that were in use at one time and is kept. A flight never
// moves in memory. Threading: one owner (a shard).
#pragma once

#include <deque>
#include <memory>

#include "emulator/shard/ranks/rank.h"

namespace ghostrank {

class Flights {
 public:
  // Returns a flight with its old values: the caller sets every field that it reads.
  Flight& take() {
    Flight& f = free_ ? *free_ : *all_.emplace_back(std::make_unique<Flight>());
    free_ = f.next;
    return f;
  }

  // Requires that the flight has left its rank's list. Clears `group`, so that no message matches
  // it.
  void give_back(Flight& f) {
    f.group = kNil;
    f.next = free_;
    free_ = &f;
  }

 private:
  std::deque<std::unique_ptr<Flight>> all_;  // allocated one by one: each lies beside its actors
  Flight* free_ = nullptr;                   // list of free flights, linked by Flight::next
};

}  // namespace ghostrank
