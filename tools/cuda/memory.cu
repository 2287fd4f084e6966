#include <algorithm>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "tools/cuda/check.h"
#include "tools/cuda/interface.h"
#include "tools/cuda/memory.h"

namespace ghostrank::cuda {
namespace {

constexpr unsigned kThreads = 256;

unsigned blocks_for(std::size_t items) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  return static_cast<unsigned>(
      std::clamp<std::size_t>((items + kThreads - 1) / kThreads, 1, kMost));
}

// The sum of four uniform numbers, which murmur3's finalizer draws from the index.
__device__ float near_normal(std::size_t i) {
  float sum = 0;
  std::uint64_t x = i * 0x9e3779b97f4a7c15ULL + 1;
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  for (int part = 0; part < 4; ++part) sum += static_cast<float>((x >> (16 * part)) & 0xffff);
  return (sum / 65536.F - 2.F) * 1.7320508F;  // four uniforms have variance 1 / 3
}

template <typename T>
__global__ void fill_kernel(T* to, std::size_t elements) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += step)
    to[i] = T(near_normal(i));
}

// Every thread moves 16 bytes.
__global__ void copy_kernel(uint4* to, const uint4* from, std::size_t items) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < items) to[i] = from[i];
}

struct Adam {
  float rate = 1e-4F, keep = .9F, keep_squares = .95F, decay = 1e-5F, epsilon = 1e-8F;
};

__device__ void step(float& w, float& m, float& s, float g, const Adam& adam) {
  m = adam.keep * m + (1 - adam.keep) * g;
  s = adam.keep_squares * s + (1 - adam.keep_squares) * g * g;
  w -= adam.decay * w + adam.rate * m / (sqrtf(s) + adam.epsilon);
}

// Every thread steps four parameters.
__global__ void adam_kernel(float4* weights, float4* moments, float4* squares,
                            const float4* gradients, std::size_t items, Adam adam) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= items) return;
  float4 w = weights[i], m = moments[i], s = squares[i];
  const float4 g = gradients[i];
  step(w.x, m.x, s.x, g.x, adam);
  step(w.y, m.y, s.y, g.y, adam);
  step(w.z, m.z, s.z, g.z, adam);
  step(w.w, m.w, s.w, g.w, adam);
  weights[i] = w, moments[i] = m, squares[i] = s;
}

__global__ void empty_kernel() {}

__device__ std::uint64_t now_ns() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void busy_kernel(std::uint64_t nanoseconds) {
  const std::uint64_t end = now_ns() + nanoseconds;
  while (now_ns() < end) {
  }
}

template <typename T>
void fill_with(void* at, std::size_t elements, cudaStream_t stream) {
  const unsigned blocks = std::min(blocks_for(elements), 1U << 14);
  fill_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<T*>(at), elements);
}

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes) {
  check(cudaMalloc(&at_, std::max<std::size_t>(bytes, 1)), "memory for operands");
}

DeviceMemory::~DeviceMemory() { cudaFree(at_); }

void fill(void* at, std::size_t elements, int type, cudaStream_t stream) {
  if (type == GHOSTRANK_CUDA_BF16)
    fill_with<__nv_bfloat16>(at, elements, stream);
  else if (type == GHOSTRANK_CUDA_FP16)
    fill_with<__half>(at, elements, stream);
  else if (type == GHOSTRANK_CUDA_FP8)
    fill_with<__nv_fp8_e4m3>(at, elements, stream);
  else
    fill_with<float>(at, elements, stream);
  check(cudaGetLastError(), "filling operands");
}

void copy(std::byte* to, const std::byte* from, std::size_t bytes, cudaStream_t stream) {
  const std::size_t items = bytes / 2 / sizeof(uint4);
  copy_kernel<<<blocks_for(items), kThreads, 0, stream>>>(
      reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from), items);
}

void step_adam(float* weights, float* moments, float* squares, const float* gradients,
               std::size_t elements, cudaStream_t stream) {
  adam_kernel<<<blocks_for(elements / 4), kThreads, 0, stream>>>(
      reinterpret_cast<float4*>(weights), reinterpret_cast<float4*>(moments),
      reinterpret_cast<float4*>(squares), reinterpret_cast<const float4*>(gradients), elements / 4,
      Adam{});
}

void do_nothing(cudaStream_t stream) { empty_kernel<<<1, 1, 0, stream>>>(); }

void keep_busy(double seconds, cudaStream_t stream) {
  busy_kernel<<<1, 1, 0, stream>>>(static_cast<std::uint64_t>(seconds * 1e9));
}

}  // namespace ghostrank::cuda
