#include "profiles/device/kernels/kernels.h"

#include "profiles/device/device.h"
#include "profiles/device/kernels/demand.h"
#include "profiles/device/kernels/measured.h"

namespace ghostrank {

KernelModel::KernelModel(const DeviceProfile& device, DataType operands)
    : type_(operand_type(device, operands)),
      stated_(stated_formula(device, peak_tflops(device, type_))),
      measured_(device.measured),
      demand_(device.demand) {}

Kernels KernelModel::product(double m, double n, double k, double batch, double element,
                             Operands operands) const {
  const ProductShape shape{m, n, k, batch, type_, operands};
  if (demand_) demand_->products.insert(shape);
  return {measured_ ? measured_->product(shape, stated_, element) : stated_.product(shape, element),
          1};
}

Kernels KernelModel::memory(double bytes, MemoryKernel kind, double element) const {
  return {measured_ ? measured_->memory(kind, bytes, element, stated_) : stated_.memory(bytes), 1};
}

Kernels KernelModel::fused_attention(const FusedAttention& shape, double element) const {
  if (demand_) demand_->attention.insert(shape);
  return {measured_ ? measured_->attention(shape, type_, stated_, element)
                    : stated_.attention(shape, element),
          1};
}

}  // namespace ghostrank
