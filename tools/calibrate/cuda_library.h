// A GPU of this machine through libghostrank-cuda.so (tools/cuda/interface.h), which is loaded when
// it is needed: the file that GHOSTRANK_CUDA_LIBRARY names, else the one beside this program or in
// ../lib.
//
// Errors: Error(environment) without the library or a GPU. Threading: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/cuda/interface.h"

namespace ghostrank {

// How long each kernel is measured, and the rest between its runs as a multiple of their time.
struct Effort {
  double seconds = .03, rest = 1;
};

class CudaGpu {
 public:
  explicit CudaGpu(int number);  // as CUDA numbers them

  const GhostrankCudaGpu& facts() const { return facts_; }

  // Empty, with the reason in `why`, if this GPU or cuBLASLt has no such kernel.
  std::optional<GhostrankCudaTime> time(const GhostrankCudaKernel& kernel, const Effort& effort,
                                        std::string& why) const;

 private:
  decltype(&ghostrank_cuda_time) time_ = nullptr;
  GhostrankCudaGpu facts_{};
};

}  // namespace ghostrank
