// Iterations of a job's segment that some ranks of a shard have not ended. Ranks progress
// independently, so several iterations are open at a time. Threading: one owner (a shard).
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/shard/shared/shared.h"

namespace ghostrank {

class OpenIterations {
 public:
  void begin(std::uint16_t job, std::uint32_t first, std::uint32_t count, std::size_t ranks) {
    first_ = first;
    ranks_ = ranks;
    sums_.assign(count, {});
    for (std::uint32_t i = 0; i < count; ++i) {
      sums_[i].iteration = first + i;
      sums_[i].job = job;
    }
  }

  // Adds the numbers of a rank that has ended `one.iteration`. Returns the sum when it was the last
  // rank; else null.
  const IterationSums* add(const IterationSums& one) {
    IterationSums& sum = sums_[one.iteration - first_];
    sum.merge(one);
    return sum.ranks == ranks_ ? &sum : nullptr;
  }

 private:
  std::uint32_t first_ = 0;
  std::size_t ranks_ = 0;
  std::vector<IterationSums> sums_;
};

}  // namespace ghostrank
