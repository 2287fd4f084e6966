// The compute profile of one GPU. A layer without measured times, and not computed kernel by kernel
// (compute.h), takes
//   FLOPs / (peak of the type * efficiency)
// and the optimizer takes the bytes that it moves through memory / memory bandwidth.
//
// Units: TFLOP/s dense, GB/s (1e9). Threading: plain values.
#pragma once

#include <span>
#include <string_view>

#include "profiles/device/kernels/shapes.h"
#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

std::span<const Key> device_keys();
DeviceProfile make_device(const YamlValue& description);

// Peak in TFLOP/s of matrix products whose operands are `type`: bfloat16 runs at the bf16 peak
// (fp16 if the device has no bf16), float32 at the tf32 peak (fp32 if it has no tf32). 0: the
// device does not support the type.
double matmul_peak_tflops(const DeviceProfile& device, DataType type);

// Likewise of a job's products: those of linear layers in fp8, where the job has such.
double matmul_peak_tflops(const DeviceProfile& device, const Precision& precision);

// The type of those products' operands on this device.
OperandType operand_type(const DeviceProfile& device, DataType type);
OperandType operand_type(const DeviceProfile& device, const Precision& precision);
double peak_tflops(const DeviceProfile& device, OperandType type);  // 0: not supported
std::string_view peak_name(OperandType type);  // of its entry among the device's peaks

}  // namespace ghostrank
