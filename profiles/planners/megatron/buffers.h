// Megatron's gradient buffer: parameters in reverse registration order, cut into buckets. One call
// reduces a bucket's gradients, and one gathers its parameters.
//
//   distributed optimizer   every parameter starts at a multiple of 64 elements; every bucket ends
//                           at a multiple of lcm(shards, 128), so that it can be sharded; a tied
//                           word embedding has a bucket of its own
//   otherwise               no padding
//
// The rules follow megatron/core/distributed. Units: elements. Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/planners/megatron/plan.h"

namespace ghostrank {

struct GradientBucket {
  std::uint64_t numel = 0;  // with padding
  int first_unit = 0;  // the first unit whose forward needs the bucket; its backward completes the
                       // bucket's gradients
  LayerPart first_module = LayerPart::qkv;  // of that unit
};

struct BufferLayout {
  bool sharded = false;           // distributed optimizer
  std::uint64_t bucket_size = 0;  // elements; 0: one bucket holds everything
  std::uint64_t shards = 1;       // ranks that reduce together
};

std::vector<GradientBucket> megatron_buckets(std::span<const Parameter> parameters,
                                             const BufferLayout& layout);

}  // namespace ghostrank
