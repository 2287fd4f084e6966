// Retransmissions of ranks to a switch outside ghostrank: packets to a slot in which the switch has
// not answered the rank's last packet. So the count needs no knowledge of the scheme, and covers
// lost packets, lost answers and answers that came too late.
//
// Threading: one owner (a shard). Memory: a number for every slot that awaits an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "collectives/common/number.h"

namespace ghostrank {

class Unanswered {
 public:
  // Begins a segment: nobody has sent anything.
  void begin(std::size_t schemes) { schemes_.assign(schemes, {}); }

  // A rank's packet for a slot (Note::index) has left; returns whether it was sent again.
  bool sent(std::uint32_t scheme, WorldParty rank, std::uint32_t slot) {
    return !schemes_[scheme].insert(key(rank, slot)).second;
  }
  void answered(std::uint32_t scheme, WorldParty rank, std::uint32_t slot) {
    schemes_[scheme].erase(key(rank, slot));
  }

 private:
  static std::uint64_t key(WorldParty rank, std::uint32_t slot) {
    return std::uint64_t{rank.index()} << 32 | slot;
  }
  std::vector<std::unordered_set<std::uint64_t>> schemes_;
};

}  // namespace ghostrank
