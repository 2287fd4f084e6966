// Kernels whose arguments are those of a call, as NCCL's have them, but which are not NCCL's by
// name. Those of another library (oneCCL, an all-reduce of PyTorch's own) are the call. One that
// runs beside a kernel of NCCL for the same call, as a check of its input, is a computation.
// Threading: pure.
#pragma once

#include <cstddef>
#include <vector>

#include "profiles/trace/readers/device_kernels.h"

namespace ghostrank {

struct OtherKernel {
  std::size_t kernel = 0;  // index
  TraceEvent call;
};

// Makes calls of the `others` among the kernels. Several with one External id are one call: the
// first one, which lasts until the last one ends.
void settle_others(const std::vector<OtherKernel>& others, std::vector<DeviceKernel>& kernels);

}  // namespace ghostrank
