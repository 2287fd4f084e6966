// Kernels as Nsight Systems recorded them (`nsys export --type sqlite`, schemas 3.24 and 3.25)
// while PyTorch marked its ops for it:
//
//   with torch.autograd.profiler.emit_nvtx(record_shapes=True): ...
//
// A kernel belongs to the innermost range of NVTX, "aten::mm, ..., sizes = [[64, 32], [32, 16]]",
// in which its thread launched it. Ranges have no types, strides and other values: the reader takes
// a product's type and operand layout from its kernel's name, and the type of a kernel that moves
// bytes from its template arguments. It leaves out attention and optimizers, because nothing says
// whether attention is causal and how long an optimizer's lists are.
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
