// The schedules of the collectives that ranks started last, found by where their ops lie. A program
// is shared, and its ops stay where they are during a segment, so that this takes a glance where
// Schedules::get() compares all that a call is.
//
// Bound: kKnown calls; a call takes the place of another. Threading: one owner (a shard).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/traffic/schedules.h"

namespace ghostrank {

class KnownCalls {
 public:
  void clear() { known_.clear(); }  // between segments

  // `op` lies in a program that ranks play; `layout`: of `group` (Cluster::layout).
  const Schedules::Play& get(const Schedules& schedules, std::uint32_t group, std::uint32_t layout,
                             const Op& op) {
    if (known_.empty()) [[unlikely]]
      known_.resize(kKnown);
    const std::size_t number = reinterpret_cast<std::uintptr_t>(&op) / sizeof(Op) + 37 * layout;
    Known& known = known_[number % kKnown];
    if (known.op != &op || known.layout != layout) [[unlikely]]
      known = {&op, &schedules.get(group, op), layout};
    return *known.play;
  }

 private:
  static constexpr std::size_t kKnown = 1024;
  struct Known {
    const Op* op = nullptr;
    const Schedules::Play* play = nullptr;
    std::uint32_t layout = 0;
  };
  std::vector<Known> known_;  // empty: none is known
};

}  // namespace ghostrank
