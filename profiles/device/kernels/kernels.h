// How long kernels take on a GPU whose profile says how many multiprocessors it has: as they were
// measured (kernels/measured.h), else by a formula (kernels/formula.h).
//
// Units: seconds, bytes. Threading: plain values; where the device has a `demand`, one thread.
#pragma once

#include <memory>

#include "profiles/device/kernels/formula.h"
#include "profiles/device/kernels/shapes.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Kernels one after the other: the GPU's time, and how many the host has to launch.
struct Kernels {
  double seconds = 0;
  int launches = 0;
  Kernels& operator+=(const Kernels& other) {
    seconds += other.seconds;
    launches += other.launches;
    return *this;
  }
  friend Kernels operator+(Kernels a, const Kernels& b) { return a += b; }
};

class KernelModel {
 public:
  // `operands`: the type of products. The device must have multiprocessors, and a peak of the type.
  KernelModel(const DeviceProfile& device, DataType operands);

  // `batch` products of m x k with k x n; `element`: bytes of an operand's element.
  Kernels product(double m, double n, double k, double batch, double element,
                  Operands operands = Operands::forward) const;
  // A product of a linear layer in fp8: operands of a byte, in rows along k as Hopper needs them,
  // and a result of two; `batch` of them. The device must have a peak of fp8.
  Kernels fp8_product(double m, double n, double k, double batch = 1) const;
  // `element`: bytes of an element, where kernels of this kind differ by it; 0: they do not.
  Kernels memory(double bytes, MemoryKernel kind = MemoryKernel::elementwise,
                 double element = 0) const;
  Kernels fused_attention(const FusedAttention& shape, double element) const;

 private:
  Kernels product(const ProductShape& shape, const KernelFormula& stated, double element) const;

  OperandType type_{};
  KernelFormula stated_,
      stated_fp8_;  // of products of type_ and all other kernels; of fp8 products
  std::shared_ptr<const MeasuredKernels> measured_;  // null: none
  std::shared_ptr<KernelDemand> demand_;             // null: demand is not recorded
};

}  // namespace ghostrank
