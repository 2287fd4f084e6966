// Iterations of a segment that some ranks of a shard have not ended. Ranks progress independently,
// so several iterations are open at a time. Threading: one owner (a shard).
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/shard/shared.h"

namespace ghostrank {

class OpenIterations {
 public:
  void begin(std::uint32_t first, std::uint32_t count, std::size_t ranks) {
    first_ = first;
    ranks_ = ranks;
    parts_.assign(count, {});
    for (std::uint32_t i = 0; i < count; ++i) parts_[i].iteration = first + i;
  }

  // Adds the part of a rank that has ended `one.iteration`. Returns the sum when it was the last
  // rank; else null.
  const IterationPart* add(const IterationPart& one) {
    IterationPart& part = parts_[one.iteration - first_];
    part.merge(one);
    return part.ranks == ranks_ ? &part : nullptr;
  }

 private:
  std::uint32_t first_ = 0;
  std::size_t ranks_ = 0;
  std::vector<IterationPart> parts_;
};

}  // namespace ghostrank
