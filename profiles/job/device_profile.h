// What a GPU computes in which time.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace ghostrank {

// Shares of a device's peaks that kernels reach, and times to launch a kernel
// (profiles/device/kernels/kernels.h).
struct KernelShares {
  double matmul = 1, memory = 1;  // shares of the peak and of the memory's bandwidth
  double launch_us = 0;           // the GPU's time to start a kernel
  double host_us = 0;             // the host's time to launch one; 0: the host never holds it up
};

enum class OperandType : std::uint8_t;  // profiles/device/kernels/shapes.h
class MeasuredKernels;                  // profiles/device/kernels/measured.h
struct KernelDemand;                    // profiles/device/kernels/demand.h

// Where a device's compute times come from.
enum class Calibration : std::uint8_t { assumed, fitted, measured };

// Compute of one GPU. With multiprocessors, dense transformers are computed kernel by kernel, else
// by FLOPs and `efficiency`.
struct DeviceProfile {
  std::string name;
  std::map<std::string, double> peak_tflops;  // dense, by type; a missing type is not supported
  double efficiency = 0.4;                    // share of the peak that training reaches
  double memory_GBps = 0;                     // HBM, for the optimizer
  double memory_bytes = 0;
  int multiprocessors = 0;  // 0: no kernels
  KernelShares kernels;
  Calibration calibration = Calibration::assumed;
  std::optional<OperandType> calibrated_type = {};  // of the products it holds for; empty: of all
  double compute_capability = 9;                    // CUDA's
  // Mean relative error of predicted step times; 0: unknown. Frameworks launch kernels of their own
  // between products: those of runs that were fitted say little of another's.
  double step_time_error = 0;
  double step_time_error_others = 0;  // of frameworks other than megatron; 0: step_time_error
  double kernel_error = 0;  // likewise of kernels that were not measured themselves; 0: unknown
  std::string source;       // where the numbers come from
  std::shared_ptr<const MeasuredKernels> measured;  // null: none
  std::shared_ptr<KernelDemand> demand;  // records which kernels are asked for; null: not recorded
};

}  // namespace ghostrank
