// The steps of a small schedule, worked out once: its actors look at them where they lie. To work
// out a step of a textbook's ring takes a fifth of a message's instructions.
//
// Bounds: a schedule is kept as a whole, if it is no longer than what is left of kMostSteps for all
// of a shard. The actors of others work out each step when they come to it.
// Threading: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

class StepTable {
 public:
  static constexpr std::size_t kMostSteps = 1 << 11;

  // The steps of the position, actor by actor; null: they are not kept. `left` is what may still be
  // kept of all schedules; it is asked and lowered at the first call. Valid as long as the table.
  const Step* of(const Schedule& schedule, Rank position, std::size_t& left) {
    if (!known_) keep(schedule, left);
    return steps_.empty() ? nullptr : steps_.data() + first_[static_cast<std::size_t>(position)];
  }

 private:
  void keep(const Schedule& schedule, std::size_t& left) {
    known_ = true;
    const int size = schedule.collective().size;
    std::vector<std::uint32_t> first;
    std::size_t steps = 0;
    for (Rank r = 0; r < size && steps <= left; ++r) {
      first.push_back(static_cast<std::uint32_t>(steps));
      for (int a = 0; a < schedule.actors(r); ++a)
        steps += static_cast<std::size_t>(schedule.actor(r, a).steps);
    }
    if (steps > left) return;
    left -= steps;
    first_ = std::move(first);
    steps_.reserve(steps);
    for (Rank r = 0; r < size; ++r)
      for (int a = 0; a < schedule.actors(r); ++a)
        for (int k = 0; k < schedule.actor(r, a).steps; ++k)
          steps_.push_back(schedule.step(r, a, k));
  }

  bool known_ = false;
  std::vector<std::uint32_t> first_;  // of its steps, by position
  std::vector<Step> steps_;
};

}  // namespace ghostrank
