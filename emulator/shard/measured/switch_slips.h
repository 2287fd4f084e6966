// How late answers of a switch outside ghostrank are. Answers do not carry their lateness, so an
// answer counts as late as the latest packet that ranks here have sent to its slot on its rail
// since the slot's last answer: a switch answers when it has the packets of all ranks.
//
// Threading: one owner (a shard).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank {

class SwitchSlips {
 public:
  // Begins a segment: nobody has sent anything.
  void begin(std::size_t schemes) { schemes_.assign(schemes, {}); }

  // A rank's packet for a slot (Note::index), and how late it left.
  void sent(std::uint32_t scheme, int rail, std::uint32_t slot, Picoseconds late) {
    Slot& s = schemes_[scheme][key(rail, slot)];
    s = {s.answered ? late : std::max(s.late, late), false};
  }
  Picoseconds answered(std::uint32_t scheme, int rail, std::uint32_t slot) {
    Slot& s = schemes_[scheme][key(rail, slot)];
    s.answered = true;
    return s.late;
  }

 private:
  struct Slot {
    Picoseconds late = 0;
    bool answered = false;
  };
  static std::uint64_t key(int rail, std::uint32_t slot) {
    return static_cast<std::uint64_t>(rail) << 32 | slot;
  }
  std::vector<std::unordered_map<std::uint64_t, Slot>> schemes_;
};

}  // namespace ghostrank
