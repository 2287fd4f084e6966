// Failures of CUDA and cuBLASLt as exceptions, which the library's entry points turn into texts.
#pragma once

#include <stdexcept>
#include <string>

#include <cuda_runtime.h>

namespace ghostrank::cuda {

struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // else the next call fails, too
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

}  // namespace ghostrank::cuda
