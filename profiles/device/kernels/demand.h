// Which kernels planners ask a device for: what `calibrate device` measures.
//
// Threading: one thread asks.
#pragma once

#include <set>

#include "profiles/device/kernels/shapes.h"

namespace ghostrank {

struct KernelDemand {
  std::set<ProductShape> products;
  std::set<FusedAttention> attention;
};

}  // namespace ghostrank
