// How long a kernel takes: medians of runs, each of many kernels in a row between two events. A
// kernel that does nothing but take its time goes before them, so that the host has launched all of
// them before the first begins: the GPU's time is measured, not the host's.
//
// Units: seconds. Threading: one thread.
#pragma once

#include <functional>

#include <cuda_runtime.h>

#include "tools/cuda/interface.h"

namespace ghostrank::cuda {

// `launch` puts one kernel into the stream; `mhz` reads the multiprocessors' clock.
GhostrankCudaTime repeat(const std::function<void()>& launch, double seconds, cudaStream_t stream,
                         const std::function<int()>& mhz);

}  // namespace ghostrank::cuda
