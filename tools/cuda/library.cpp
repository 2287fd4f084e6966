// The entry points of interface.h: which GPU, what is known of it, which kernel is repeated.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cublasLt.h>
#include <dlfcn.h>
#include <exception>
#include <functional>
#include <string>

#include <cuda_runtime.h>

#include "tools/cuda/check.h"
#include "tools/cuda/interface.h"
#include "tools/cuda/memory.h"
#include "tools/cuda/products.h"
#include "tools/cuda/repeat.h"

namespace ghostrank::cuda {
namespace {

// NVML, the driver's management library. It is no part of CUDA and may be missing.
class Management {
 public:
  explicit Management(const std::string& bus) {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library_) return;
    const auto init = function<int()>("nvmlInit_v2");
    const auto find = function<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    if (!init || !find || init() != 0 || find(bus.c_str(), &device_) != 0) device_ = nullptr;
  }

  std::string driver() const {
    char text[64] = "";
    const auto version = function<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
    return device_ && version && version(text, sizeof text) == 0 ? text : "";
  }
  int sm_mhz() const {
    constexpr int kMultiprocessors = 1;  // NVML_CLOCK_SM
    unsigned mhz = 0;
    const auto clock = function<int(void*, int, unsigned*)>("nvmlDeviceGetClockInfo");
    return device_ && clock && clock(device_, kMultiprocessors, &mhz) == 0 ? static_cast<int>(mhz)
                                                                           : 0;
  }

 private:
  template <typename Type>
  Type* function(const char* name) const {
    return library_ ? reinterpret_cast<Type*>(dlsym(library_, name)) : nullptr;
  }

  void* library_ = nullptr;  // stays loaded
  void* device_ = nullptr;
};

struct Gpu {
  GhostrankCudaGpu facts{};
  cudaStream_t stream = nullptr;
  Management* management = nullptr;
};
Gpu gpu;  // the one that was opened

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "what the GPU has");
  return value;
}

void open(int device) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "no GPU can be used");
  if (device < 0 || device >= count)
    throw std::runtime_error("there is no GPU " + std::to_string(device) + " among " +
                             std::to_string(count));
  check(cudaSetDevice(device), "taking the GPU");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "what the GPU is");
  char bus[32] = "";
  check(cudaDeviceGetPCIBusId(bus, sizeof bus, device), "the GPU's bus");
  gpu = {};
  gpu.management = new Management(bus);
  GhostrankCudaGpu& facts = gpu.facts;
  std::snprintf(facts.name, sizeof facts.name, "%s", properties.name);
  std::snprintf(facts.driver, sizeof facts.driver, "%s", gpu.management->driver().c_str());
  check(cudaRuntimeGetVersion(&facts.cuda), "CUDA's version");
  facts.cublas = static_cast<std::int32_t>(cublasLtGetVersion());
  facts.multiprocessors = properties.multiProcessorCount;
  facts.capability_major = properties.major;
  facts.capability_minor = properties.minor;
  facts.sm_mhz = attribute(cudaDevAttrClockRate, device) / 1000;
  facts.memory_mhz = attribute(cudaDevAttrMemoryClockRate, device) / 1000;
  facts.bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, device);
  facts.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  facts.l2_bytes = properties.l2CacheSize;
  check(cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking), "a stream");
}

struct Effort {
  double seconds, rest;
};

GhostrankCudaTime measured(const std::function<void()>& launch, const Effort& effort) {
  return repeat(
      {launch, [] { return gpu.management->sm_mhz(); }, gpu.stream, effort.seconds, effort.rest});
}

GhostrankCudaTime copied(std::size_t bytes, const Effort& effort) {
  const std::size_t half = bytes / 2;
  DeviceMemory from(half), to(half);
  fill(from.at(), half / sizeof(float), GHOSTRANK_CUDA_FP32, gpu.stream);
  return measured([&] { copy(to.at(), from.at(), bytes, gpu.stream); }, effort);
}

GhostrankCudaTime stepped(std::size_t bytes, const Effort& effort) {
  constexpr std::size_t kMoved = 28;  // bytes of a parameter
  const std::size_t elements = bytes / kMoved / 4 * 4, array = elements * sizeof(float);
  DeviceMemory weights(array), moments(array), squares(array), gradients(array);
  fill(weights.at(), elements, GHOSTRANK_CUDA_FP32, gpu.stream);
  fill(gradients.at(), elements, GHOSTRANK_CUDA_FP32, gpu.stream);
  check(cudaMemsetAsync(moments.at(), 0, array, gpu.stream), "clearing moments");
  check(cudaMemsetAsync(squares.at(), 0, array, gpu.stream), "clearing moments");
  const auto floats = [](const DeviceMemory& memory) {
    return reinterpret_cast<float*>(memory.at());
  };
  return measured(
      [&] {
        step_adam(floats(weights), floats(moments), floats(squares), floats(gradients), elements,
                  gpu.stream);
      },
      effort);
}

GhostrankCudaTime time_of(const GhostrankCudaKernel& kernel, const Effort& effort) {
  if (!gpu.stream) throw std::runtime_error("no GPU was opened");
  if (kernel.kind == GHOSTRANK_CUDA_PRODUCT) {
    Product product(kernel, static_cast<std::size_t>(gpu.facts.l2_bytes), gpu.stream);
    return measured([&] { product.launch(); }, effort);
  }
  const auto bytes = static_cast<std::size_t>(kernel.bytes);
  if (kernel.kind == GHOSTRANK_CUDA_COPY) return copied(bytes, effort);
  if (kernel.kind == GHOSTRANK_CUDA_OPTIMIZER) return stepped(bytes, effort);
  if (kernel.kind == GHOSTRANK_CUDA_EMPTY) return measured([] { do_nothing(gpu.stream); }, effort);
  throw Unsupported("no kind of kernel " + std::to_string(kernel.kind));
}

template <typename Work>
std::int32_t guarded(char* error, const Work& work) {
  const auto say = [&](const std::exception& e, std::int32_t status) {
    std::snprintf(error, GHOSTRANK_CUDA_ERROR, "%s", e.what());
    return status;
  };
  try {
    work();
    return 0;
  } catch (const Unsupported& e) {
    return say(e, GHOSTRANK_CUDA_UNSUPPORTED);
  } catch (const std::exception& e) {
    return say(e, GHOSTRANK_CUDA_FAILED);
  }
}

}  // namespace
}  // namespace ghostrank::cuda

#define GHOSTRANK_CUDA_EXPORT extern "C" __attribute__((visibility("default")))

GHOSTRANK_CUDA_EXPORT std::int32_t ghostrank_cuda_abi() { return GHOSTRANK_CUDA_ABI; }

GHOSTRANK_CUDA_EXPORT std::int32_t ghostrank_cuda_open(std::int32_t device, GhostrankCudaGpu* out,
                                                       char* error) {
  return ghostrank::cuda::guarded(error, [&] {
    ghostrank::cuda::open(device);
    *out = ghostrank::cuda::gpu.facts;
  });
}

GHOSTRANK_CUDA_EXPORT std::int32_t ghostrank_cuda_time(const GhostrankCudaKernel* kernel,
                                                       double seconds, double rest,
                                                       GhostrankCudaTime* out, char* error) {
  return ghostrank::cuda::guarded(error, [&] {
    *out = ghostrank::cuda::time_of(*kernel, {seconds, rest});
  });
}
