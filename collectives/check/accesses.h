// Records which actors of a rank use which elements of its work and scratch buffers, so that the
// checker finds two actors that use one element without a defined order.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

// Without order: does more than one actor use any element?
class Sharing {
 public:
  explicit Sharing(std::uint64_t elements) : user_(elements, kNobody) {}
  // Records that the actor uses the block. Returns true if another actor has used part of it.
  bool note(int actor, const Block& block);

 private:
  static constexpr int kNobody = -1;
  std::vector<int> user_;  // by element: the first actor that used it
};

// With order. An actor's time advances with each message it sends and each recorded step it ends.
// An access at time t of another actor precedes this one if this actor has heard, by messages or
// dependencies, of that actor's time t or later.
class AccessOrder {
 public:
  AccessOrder(std::uint64_t elements, int actors);

  struct Conflict {
    std::uint64_t element = 0;
    int other = 0;  // actor
  };
  // `heard`: by actor of the rank, the latest time this actor has heard of; its own entry is now.
  // Records the access, or returns the conflict.
  std::optional<Conflict> access(int actor, const Block& block, bool write,
                                 const std::uint32_t* heard);

 private:
  std::size_t actors_;
  std::vector<std::uint32_t> reads_, writes_;  // latest time, by element and actor; 0: never
};

}  // namespace ghostrank
