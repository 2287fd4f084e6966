// A library with the interface of libghostrank-cuda.so, but for a made-up GPU: products take whole
// waves of 128 x 256 tiles at 75 % of 800 TFLOP/s (tf32: 400) and cost as if k were 128 larger,
// bytes move at 2 TB/s, and every kernel adds 2 us. It has no tf32 product whose n is 6144.
// The environment variable FAKE_CUDA_NAME sets the name of the GPU.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/cuda/interface.h"

extern "C" {

int32_t ghostrank_cuda_abi() { return GHOSTRANK_CUDA_ABI; }

int32_t ghostrank_cuda_open(int32_t device, GhostrankCudaGpu* gpu, char* error) {
  if (device != 0) {
    std::snprintf(error, GHOSTRANK_CUDA_ERROR, "there is no GPU %d among 1", device);
    return GHOSTRANK_CUDA_FAILED;
  }
  *gpu = {};
  const char* name = std::getenv("FAKE_CUDA_NAME");
  std::snprintf(gpu->name, sizeof gpu->name, "%s", name ? name : "NVIDIA H100 80GB HBM3");
  std::snprintf(gpu->driver, sizeof gpu->driver, "580.1");
  gpu->cuda = 13000;
  gpu->cublas = 130100;
  gpu->multiprocessors = 132;
  gpu->capability_major = 9;
  gpu->sm_mhz = 1980;
  gpu->memory_mhz = 2619;
  gpu->bus_bits = 5120;
  gpu->memory_bytes = int64_t{80} << 30;
  gpu->l2_bytes = 50 << 20;
  return 0;
}

int32_t ghostrank_cuda_time(const GhostrankCudaKernel* kernel, double, double,
                            GhostrankCudaTime* time, char* error) {
  const auto real = [](int64_t size) { return static_cast<double>(size); };
  *time = {2e-6, 3e-6, 9, 100, 1755};
  if (kernel->kind == GHOSTRANK_CUDA_PRODUCT) {
    if (kernel->type == GHOSTRANK_CUDA_TF32 && kernel->n == 6144) {
      std::snprintf(error, GHOSTRANK_CUDA_ERROR, "there is no such product");
      return GHOSTRANK_CUDA_UNSUPPORTED;
    }
    const double peak = kernel->type == GHOSTRANK_CUDA_TF32 ? 400e12 : 800e12;
    const double tiles =
        real(kernel->batch) * std::ceil(real(kernel->m) / 128) * std::ceil(real(kernel->n) / 256);
    time->seconds +=
        std::ceil(tiles / 132) * 2 * 128 * 256 * (real(kernel->k) + 128) / (.75 * peak / 132);
  } else if (kernel->kind != GHOSTRANK_CUDA_EMPTY) {
    time->seconds += real(kernel->bytes) / 2e12;
  }
  return 0;
}
}
