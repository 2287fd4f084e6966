// Sizes and times that a reader of recorded kernels returns must be positive.
#pragma once

#include "tests/fuzz/fuzz.h"
#include "tools/calibrate/recorded_kernels.h"

namespace ghostrank::fuzz {

inline void require_sizes_and_times(const KernelTables& tables) {
  for (const MeasuredProduct& one : tables.products)
    require(one.seconds > 0 && one.shape.flops() > 0);
  for (const MeasuredTransfer& one : tables.transfers) require(one.seconds > 0 && one.bytes > 0);
  for (const MeasuredAttention& one : tables.attention)
    require(one.seconds > 0 && one.shape.flops() > 0);
}

}  // namespace ghostrank::fuzz
