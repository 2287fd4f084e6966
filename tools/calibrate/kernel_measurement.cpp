#include "tools/calibrate/kernel_measurement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "profiles/error.h"
#include "profiles/planners/plan.h"

namespace ghostrank {
namespace {

constexpr double kLeastBytes = 64 << 10, kMostBytes = 4.0 * (1 << 30);
// Share of the GPU's memory that one kernel may move, so that its buffers fit beside others.
constexpr double kShareOfMemory = .5;

struct Transfer {
  GhostrankCudaKind kind;
  MemoryKernel as;
  double multiple;  // bytes that a thread moves; sizes are multiples of it
};
constexpr std::array kTransfers{
    Transfer{GHOSTRANK_CUDA_COPY, MemoryKernel::elementwise, 32},
    Transfer{GHOSTRANK_CUDA_OPTIMIZER, MemoryKernel::optimizer, 28 * 4}};

constexpr std::array<double, 3> kRows{512, 2048, 8192};
constexpr std::array<double, 4> kWidths{1024, 2048, 4096, 8192};

GhostrankCudaType cuda_type(OperandType type) {
  switch (type) {
    case OperandType::bf16:
      return GHOSTRANK_CUDA_BF16;
    case OperandType::fp16:
      return GHOSTRANK_CUDA_FP16;
    case OperandType::tf32:
      return GHOSTRANK_CUDA_TF32;
    case OperandType::fp32:
      return GHOSTRANK_CUDA_FP32;
    case OperandType::fp8:
      break;
  }
  return GHOSTRANK_CUDA_FP8;
}

GhostrankCudaOperands cuda_operands(Operands operands) {
  switch (operands) {
    case Operands::forward:
      return GHOSTRANK_CUDA_FORWARD;
    case Operands::input:
      return GHOSTRANK_CUDA_INPUT;
    case Operands::weight:
      break;
  }
  return GHOSTRANK_CUDA_WEIGHT;
}

GhostrankCudaKernel product_kernel(const ProductShape& shape) {
  GhostrankCudaKernel kernel{};
  kernel.kind = GHOSTRANK_CUDA_PRODUCT;
  kernel.type = cuda_type(shape.type);
  kernel.operands = cuda_operands(shape.operands);
  kernel.m = static_cast<std::int64_t>(shape.m);
  kernel.n = static_cast<std::int64_t>(shape.n);
  kernel.k = static_cast<std::int64_t>(shape.k);
  kernel.batch = static_cast<std::int64_t>(shape.batch);
  return kernel;
}

std::string text_of(const ProductShape& shape) {
  const auto whole = [](double size) { return std::to_string(static_cast<std::int64_t>(size)); };
  return whole(shape.m) + " x " + whole(shape.n) + " x " + whole(shape.k);
}

}  // namespace

KernelDemand demand_of(const LoadedJob& job, int multiprocessors) {
  JobSpec spec = job.spec;
  spec.device.multiprocessors = multiprocessors;
  spec.device.memory_bytes = 0;  // whether the job fits does not matter here
  spec.device.memory_GBps = std::max(spec.device.memory_GBps, 1.);
  spec.device.measured = nullptr;
  spec.device.demand = std::make_shared<KernelDemand>();
  plan_workload(spec);
  if (spec.device.demand->products.empty())
    throw Error(spec.file +
                ": this model is not computed kernel by kernel (experts, convolutions and measured "
                "layers are not); leave it out");
  return *spec.device.demand;
}

KernelDemand usual_demand(OperandType type) {
  KernelDemand demand;
  for (const auto& [operands, word] : kOperands)
    for (const double rows : kRows)
      for (const double a : kWidths)
        for (const double b : kWidths) {
          ProductShape shape{rows, a, b, 1, type, operands};
          if (operands == Operands::weight) shape.m = a, shape.n = b, shape.k = rows;
          demand.products.insert(shape);
        }
  return demand;
}

std::set<ProductShape> in_types(const std::set<ProductShape>& products,
                                const std::vector<OperandType>& types) {
  std::set<ProductShape> out;
  for (ProductShape shape : products)
    for (const OperandType type : types) {
      shape.type = type;
      out.insert(shape);
    }
  return out;
}

KernelMeasurement measure_kernels(const CudaGpu& gpu, const std::set<ProductShape>& products,
                                  const Effort& effort) {
  KernelMeasurement out;
  std::string why;
  const auto time = [&](const GhostrankCudaKernel& kernel) {
    const auto measured = gpu.time(kernel, effort, why);
    if (measured && (out.least_runs == 0 || measured->runs < out.least_runs))
      out.least_runs = measured->runs;
    return measured;
  };
  GhostrankCudaKernel kernel{};
  kernel.kind = GHOSTRANK_CUDA_EMPTY;
  if (const auto measured = time(kernel)) {
    out.start = measured->seconds;
    out.host_start = measured->host_seconds;
  }
  const double most = static_cast<double>(gpu.facts().memory_bytes) * kShareOfMemory;
  for (const Transfer& one : kTransfers)
    for (double bytes = kLeastBytes; bytes <= std::min(kMostBytes, most); bytes *= 2) {
      const double moved = std::floor(bytes / one.multiple) * one.multiple;
      kernel.kind = one.kind;
      kernel.bytes = static_cast<std::int64_t>(moved);
      if (const auto measured = time(kernel))
        out.tables.transfers.push_back({one.as, moved, measured->seconds});
    }
  for (const ProductShape& shape : products) {
    const auto measured = time(product_kernel(shape));
    if (!measured) {
      out.left_out.push_back(text_of(shape) + ": " + why);
      continue;
    }
    out.tables.products.push_back({shape, measured->seconds});
    if (measured->sm_mhz == 0) continue;
    out.least_mhz =
        out.least_mhz == 0 ? measured->sm_mhz : std::min(out.least_mhz, measured->sm_mhz);
    out.most_mhz = std::max(out.most_mhz, measured->sm_mhz);
  }
  return out;
}

}  // namespace ghostrank
