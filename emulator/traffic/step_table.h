// The steps of a small schedule, computed once, because computing a step of a textbook ring takes a
// fifth of a message's instructions.
//
// Bounds: a schedule is cached only if all its steps fit the shard's remaining budget of
// kMostSteps. For other schedules the actors compute each step when they reach it. Threading: one
// owner.
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

  // The steps of the position, actor by actor; null: not cached. The first call decides, and takes
  // the steps from `left`, the shard's remaining budget. The pointer is valid as long as the table.
  const Step* of(const Schedule& schedule, GroupRank position, std::size_t& left) {
    if (!known_) keep(schedule, left);
    return steps_.empty() ? nullptr : steps_.data() + first_[position];
  }

 private:
  void keep(const Schedule& schedule, std::size_t& left) {
    known_ = true;
    const int size = schedule.collective().size;
    std::vector<std::uint32_t> first;
    std::size_t steps = 0;
    for (GroupRank r = 0; r < size && steps <= left; ++r) {
      first.push_back(static_cast<std::uint32_t>(steps));
      for (int a = 0; a < schedule.actors(r); ++a) steps += schedule.actor(r, a).steps;
    }
    if (steps > left) return;
    left -= steps;
    first_ = std::move(first);
    steps_.reserve(steps);
    for (GroupRank r = 0; r < size; ++r)
      for (int a = 0; a < schedule.actors(r); ++a)
        for (int k = 0; k < schedule.actor(r, a).steps; ++k)
          steps_.push_back(schedule.step(r, a, k));
  }

  bool known_ = false;
  std::vector<std::uint32_t> first_;  // index of the first step, by position
  std::vector<Step> steps_;
};

}  // namespace ghostrank
