// Which actors of a rank use which elements of its work buffer: for the checker, which must find
// two actors that use one element in no certain order.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

// Without order: is any element used by more than one actor?
class Sharing {
 public:
  explicit Sharing(std::uint64_t elements) : user_(elements, kNobody) {}
  // Notes that the actor uses the block. True when another one has used part of it.
  bool note(int actor, const Block& block);

 private:
  static constexpr int kNobody = -1;
  std::vector<int> user_;  // the first one, by element
};

// With order. Times count the messages an actor has sent: an access at time t of another actor is
// ordered before now if this actor has heard, by messages, of that one's time t or a later one.
class AccessOrder {
 public:
  AccessOrder(std::uint64_t elements, int actors);

  struct Conflict {
    std::uint64_t element = 0;
    int other = 0;  // actor
  };
  // `heard` holds, for every actor of the rank, the latest time heard of; its own is now.
  std::optional<Conflict> access(int actor, const Block& block, bool write,
                                 const std::uint32_t* heard);

 private:
  std::size_t actors_;
  std::vector<std::uint32_t> reads_, writes_;  // latest time, by element and actor; 0: never
};

}  // namespace ghostrank
