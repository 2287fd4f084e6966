// Ranks whose computations take longer for a time (`events` of a job): stragglers.
//
//   factor of a rank   1 ──────┐ 1.5 ┌──── 1     a computation that begins within takes 1.5 times
//   as
//                              at    at + for     long, all of it
//
// What counts is when a computation begins, so the answer depends on the rank's own times alone: it
// is the same on every fabric and for every number of shards. Factors of several events multiply.
//
// Units: emulated picoseconds since the measured iterations began. Threading: immutable.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collectives/common/number.h"
#include "profiles/job/events.h"
#include "profiles/units.h"

namespace ghostrank {

class SlowRanks {
 public:
  explicit SlowRanks(const JobEvents& events);

  bool any() const { return !spells_.empty(); }
  // How long a computation takes that the rank begins at `at`, in its measured iteration
  // `iteration` (from 0), and that takes `duration` otherwise; never less than that.
  Picoseconds slowed(WorldRank rank, Picoseconds at, std::uint32_t iteration,
                     Picoseconds duration) const;

 private:
  std::map<WorldRank, std::vector<const JobEvent*>> spells_;
};

}  // namespace ghostrank
