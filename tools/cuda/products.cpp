#include "tools/cuda/products.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "tools/cuda/check.h"

namespace ghostrank::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;
constexpr std::size_t kAlign = 256;        // bytes, as the caching allocators of frameworks
constexpr std::size_t kMostSets = 64;      // of operands
constexpr std::size_t kTimesTheCache = 2;  // size of all sets together over the L2 cache's

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text = std::string(what) + ": cuBLASLt status " + std::to_string(status);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) throw Unsupported(text);
  throw std::runtime_error(text);
}

struct Types {
  cudaDataType_t operand, result;
  cublasComputeType_t compute;
  std::size_t operand_bytes, result_bytes;
};

Types types_of(int type) {
  switch (type) {
    case GHOSTRANK_CUDA_BF16:
      return {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2, 2};
    case GHOSTRANK_CUDA_FP16:
      return {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 2, 2};
    case GHOSTRANK_CUDA_TF32:
      return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, 4};
    case GHOSTRANK_CUDA_FP32:
      return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 4, 4};
    case GHOSTRANK_CUDA_FP8:
      return {CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1, 2};
    default:
      throw Unsupported("no type " + std::to_string(type));
  }
}

std::size_t up(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// One for the whole process, never destroyed: the driver may be gone before.
cublasLtHandle_t handle() {
  static const cublasLtHandle_t handle = [] {
    cublasLtHandle_t made = nullptr;
    check(cublasLtCreate(&made), "cublasLtCreate");
    return made;
  }();
  return handle;
}

cublasLtMatrixLayout_t layout(cudaDataType_t type, std::uint64_t rows, std::uint64_t columns,
                              std::int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, rows, columns, static_cast<std::int64_t>(rows)),
        "a matrix");
  const auto count = static_cast<std::int32_t>(batch);
  const auto stride = static_cast<std::int64_t>(rows * columns);
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                         sizeof count),
        "a batch");
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                         sizeof stride),
        "a batch");
  return made;
}

}  // namespace

Product::Product(const GhostrankCudaKernel& kernel, std::size_t l2_bytes, cudaStream_t stream)
    : stream_(stream), workspace_(kWorkspace) {
  describe(kernel);
  choose(kernel);
  allocate(kernel, l2_bytes);
}

Product::~Product() {
  cublasLtMatrixLayoutDestroy(first_);
  cublasLtMatrixLayoutDestroy(second_);
  cublasLtMatrixLayoutDestroy(result_);
  cublasLtMatmulDescDestroy(what_);
}

// cuBLASLt's matrices are column-major, so this computes the transposed product: n x m there is
// m x n row-major here, and the operands change places.
void Product::describe(const GhostrankCudaKernel& kernel) {
  const Types types = types_of(kernel.type);
  const auto m = static_cast<std::uint64_t>(kernel.m), n = static_cast<std::uint64_t>(kernel.n),
             k = static_cast<std::uint64_t>(kernel.k);
  const bool first_along_k = kernel.operands == GHOSTRANK_CUDA_FORWARD;
  const bool second_along_k = kernel.operands != GHOSTRANK_CUDA_WEIGHT;
  const cublasOperation_t first = first_along_k ? CUBLAS_OP_T : CUBLAS_OP_N,
                          second = second_along_k ? CUBLAS_OP_N : CUBLAS_OP_T;
  check(cublasLtMatmulDescCreate(&what_, types.compute, CUDA_R_32F), "a product");
  check(cublasLtMatmulDescSetAttribute(what_, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first),
        "a product");
  check(cublasLtMatmulDescSetAttribute(what_, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second),
        "a product");
  first_ = layout(types.operand, first_along_k ? k : n, first_along_k ? n : k, kernel.batch);
  second_ = layout(types.operand, second_along_k ? k : m, second_along_k ? m : k, kernel.batch);
  result_ = layout(types.result, n, m, kernel.batch);
}

void Product::choose(const GhostrankCudaKernel& kernel) {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "a preference");
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                       &kWorkspace, sizeof kWorkspace);
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle(), what_, first_, second_, result_, result_, preference, 1, &chosen_, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0))
    throw Unsupported(
        "cuBLASLt has no product of this size, type and order: " + std::to_string(kernel.m) +
        " x " + std::to_string(kernel.n) + " x " + std::to_string(kernel.k));
  check(status, "cuBLASLt's heuristic");
}

void Product::allocate(const GhostrankCudaKernel& kernel, std::size_t l2_bytes) {
  const Types types = types_of(kernel.type);
  const auto size = [&](std::int64_t rows, std::int64_t columns, std::size_t element) {
    return up(static_cast<std::size_t>(rows * columns * kernel.batch) * element);
  };
  first_bytes_ = size(kernel.n, kernel.k, types.operand_bytes);
  second_bytes_ = size(kernel.m, kernel.k, types.operand_bytes);
  result_bytes_ = size(kernel.m, kernel.n, types.result_bytes);
  const std::size_t set = first_bytes_ + second_bytes_ + result_bytes_;
  sets_ = std::clamp<std::size_t>((kTimesTheCache * l2_bytes + set - 1) / set, 1, kMostSets);
  operands_ = DeviceMemory(sets_ * set);
  for (std::size_t s = 0; s < sets_; ++s)
    fill(operands_.at(s * set), (first_bytes_ + second_bytes_) / types.operand_bytes, kernel.type,
         stream_);
}

void Product::launch() {
  const float one = 1, none = 0;
  const std::size_t set = first_bytes_ + second_bytes_ + result_bytes_;
  std::byte* const first = operands_.at(next_ * set);
  std::byte* const second = first + first_bytes_;
  std::byte* const result = second + second_bytes_;
  check(
      cublasLtMatmul(handle(), what_, &one, first, first_, second, second_, &none, result, result_,
                     result, result_, &chosen_.algo, workspace_.at(), kWorkspace, stream_),
      "cublasLtMatmul");
  next_ = (next_ + 1) % sets_;
}

}  // namespace ghostrank::cuda
