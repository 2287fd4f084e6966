// How long a kernel takes: medians of runs, each of many kernels in a row between two events. A
// kernel that only spins goes before them, so that the host has launched all of them before the
// first begins: the GPU's time is measured, not the host's. Between runs the GPU
// may rest: products without a pause draw more power than training does, and lower the clocks.
//
// Units: seconds. Threading: one thread.
#pragma once

#include <functional>

#include <cuda_runtime.h>

#include "tools/cuda/interface.h"

namespace ghostrank::cuda {

// What is measured, and how.
struct Repetition {
  std::function<void()> launch;  // puts one kernel into the stream
  std::function<int()> mhz;      // reads the multiprocessors' clock
  cudaStream_t stream = nullptr;
  double seconds = 0;  // of kernels, about
  double rest = 0;     // between runs, as a multiple of their time
};

GhostrankCudaTime repeat(const Repetition& what);

}  // namespace ghostrank::cuda
