#include "profiles/device/kernels/kernels.h"

#include "profiles/device/device.h"
#include "profiles/device/kernels/demand.h"
#include "profiles/device/kernels/measured.h"

namespace ghostrank {

KernelModel::KernelModel(const DeviceProfile& device, DataType operands)
    : type_(operand_type(device, operands)),
      stated_(stated_formula(device, peak_tflops(device, type_))),
      stated_fp8_(stated_formula(device, peak_tflops(device, OperandType::fp8))),
      measured_(device.measured),
      demand_(device.demand) {}

Kernels KernelModel::product(double m, double n, double k, double batch, double element,
                             Operands operands) const {
  return product({m, n, k, batch, type_, operands}, stated_, element);
}

Kernels KernelModel::fp8_product(double m, double n, double k, double batch) const {
  return product({m, n, k, batch, OperandType::fp8, Operands::forward}, stated_fp8_,
                 bytes_of(OperandType::fp8));
}

Kernels KernelModel::product(const ProductShape& shape, const KernelFormula& stated,
                             double element) const {
  if (demand_) demand_->products.insert(shape);
  return {measured_ ? measured_->product(shape, stated, element) : stated.product(shape, element),
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
