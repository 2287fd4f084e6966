// Kernels as PyTorch's profiler recorded them (Kineto's Chrome traces, with record_shapes).
//
// A kernel belongs to the op that launched it ("External id"); the op's input shapes say which size
// it was, its name which kind.
//
// Errors: Error(usage) "FILE:LINE: what; what to do", also for traces without shapes. Threading:
// pure function of the files.
#pragma once

#include <string>
#include <vector>

#include "tools/calibrate/recorded_kernels.h"

namespace ghostrank {

RecordedKernels read_kineto_kernels(const std::vector<std::string>& paths);

}  // namespace ghostrank
