// Kernels as Nsight Systems recorded them (`nsys export --type sqlite`, schemas 3.24 and 3.25)
// while PyTorch marked its ops for it:
//
//   with torch.autograd.profiler.emit_nvtx(record_shapes=True): ...
//
// A kernel belongs to the innermost range of NVTX, "aten::mm, ..., sizes = [[64, 32], [32, 16]]",
// in which its thread launched it. Ranges have no types, strides and other values: a product's type
// and how its operands lie are read off its kernel's name, and the type of what moves bytes off the
// types in its template; attention and optimizers are left out, because nothing says whether the
// one is causal and how long the other's lists are.
//
// Errors: Error(usage) "FILE: TABLE row N: what; what to do". Threading: pure function of the
// files.
#pragma once

#include <string>
#include <vector>

#include "tools/calibrate/recorded_kernels.h"

namespace ghostrank {

RecordedKernels read_nsys_kernels(const std::vector<std::string>& paths);

}  // namespace ghostrank
