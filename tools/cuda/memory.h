// Memory of the GPU with random contents, and the kernels that move it.
//
// Threading: one thread.
#pragma once

#include <cstddef>
#include <utility>

#include <cuda_runtime.h>

namespace ghostrank::cuda {

// Memory of the GPU; the destructor frees it. The constructor throws if so much is not free.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept { std::swap(at_, other.at_); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }

  std::byte* at(std::size_t offset = 0) const { return static_cast<std::byte*>(at_) + offset; }

 private:
  void* at_ = nullptr;
};

// Fills with numbers near a normal distribution of mean 0 and deviation 1: zeros would draw less
// power, and clocks stay higher than in training. `type`: GhostrankCudaType.
void fill(void* at, std::size_t elements, int type, cudaStream_t stream);

// Reads bytes / 2 and writes bytes / 2; `bytes` is a multiple of 32.
void copy(std::byte* to, const std::byte* from, std::size_t bytes, cudaStream_t stream);

// One step of Adam over `elements` float32 of each array; `elements` is a multiple of 4.
void step_adam(float* weights, float* moments, float* squares, const float* gradients,
               std::size_t elements, cudaStream_t stream);

void do_nothing(cudaStream_t stream);

// Keeps the stream busy for `seconds`.
void keep_busy(double seconds, cudaStream_t stream);

}  // namespace ghostrank::cuda
