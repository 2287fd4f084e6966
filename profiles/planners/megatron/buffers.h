// Megatron's gradient buffer: parameters laid out in reverse registration order and cut in buckets,
// each reduced (and its parameters gathered) by one call.
//
//   distributed optimizer   every parameter starts at a multiple of 64 elements, every bucket ends
//                           at a multiple of lcm(dp, 128), so that it can be sharded; a tied word
//                           embedding has a bucket of its own
//   otherwise               no padding
//
// The rule is that of megatron/core/distributed. Units: elements. Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/planners/megatron/plan.h"

namespace ghostrank {

struct GradientBucket {
  std::uint64_t numel = 0;  // with padding
  int first_unit = 0;       // its forward needs the bucket's parameters first; its backward
                            // completes the bucket's gradients
};

struct BufferLayout {
  bool sharded = false;           // distributed optimizer
  std::uint64_t bucket_size = 0;  // elements; 0: one bucket holds everything
  std::uint64_t shards = 1;       // ranks that reduce together
};

std::vector<GradientBucket> megatron_buckets(std::span<const Parameter> parameters,
                                             const BufferLayout& layout);

}  // namespace ghostrank
