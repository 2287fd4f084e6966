// Matrix products by cuBLASLt: the algorithm that its heuristic puts first, with the workspace that
// PyTorch gives it, and no epilogue.
//
// Threading: one thread.
#pragma once

#include <cstddef>
#include <cublasLt.h>
#include <vector>

#include <cuda_runtime.h>

#include "tools/cuda/interface.h"
#include "tools/cuda/memory.h"

namespace ghostrank::cuda {

// One product over several sets of operands in turn, which together do not fit into the L2 cache.
class Product {
 public:
  // Throws Unsupported where cuBLASLt has no such product.
  Product(const GhostrankCudaKernel& kernel, std::size_t l2_bytes, cudaStream_t stream);
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  void launch();

 private:
  void describe(const GhostrankCudaKernel& kernel);
  void choose(const GhostrankCudaKernel& kernel);
  void allocate(const GhostrankCudaKernel& kernel, std::size_t l2_bytes);

  cudaStream_t stream_;
  cublasLtMatmulDesc_t what_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_{};
  DeviceMemory operands_, workspace_;
  std::size_t first_bytes_ = 0, second_bytes_ = 0, result_bytes_ = 0, sets_ = 1, next_ = 0;
};

}  // namespace ghostrank::cuda
