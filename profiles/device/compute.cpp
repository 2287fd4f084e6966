#include "profiles/device/compute.h"

#include <cmath>

#include "profiles/device/device.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr double kLongestDelay = 1e6;  // seconds; beyond it the job's units are wrong

// Bytes per parameter that an fp32 optimizer step moves: Adam reads parameter, gradient and two
// moments, and writes all but the gradient; SGD has one moment.
double optimizer_bytes(const std::string& optimizer) { return optimizer == "sgd" ? 20 : 28; }

}  // namespace

ComputeModel::ComputeModel(const JobSpec& spec)
    : spec_(spec),
      flops_per_second_(matmul_peak_tflops(spec.device, spec.precision.parameters) * 1e12 *
                        spec.device.efficiency),
      bytes_per_second_(spec.device.memory_GBps * 1e9) {
  if (flops_per_second_ <= 0)
    throw Error(spec.source_of("device") + ": the device has no peak_tflops for " +
                std::string(name_of(spec.precision.parameters)) + "; choose another device");
}

Picoseconds ComputeModel::checked(double time, const std::string& what) const {
  if (!(time <= kLongestDelay))
    throw Error(spec_.source_of("device") + ": " + what + " would take more than " +
                std::to_string(static_cast<long>(kLongestDelay)) +
                " s; check the device's peak_tflops and memory_GBps and the model's sizes");
  return std::llround(time * static_cast<double>(kPicosPerSecond));
}

Picoseconds ComputeModel::products(double flops, const std::string& what) const {
  return checked(flops / flops_per_second_, what);
}

Picoseconds ComputeModel::memory(double bytes, const std::string& what) const {
  return bytes_per_second_ > 0 ? checked(bytes / bytes_per_second_, what) : 0;
}

Picoseconds ComputeModel::optimizer(double parameters) const {
  return memory(parameters * optimizer_bytes(spec_.precision.optimizer), "the optimizer");
}

}  // namespace ghostrank
