#include "profiles/device/compute.h"

#include <algorithm>
#include <cmath>

#include "profiles/device/device.h"
#include "profiles/device/kernels/eager.h"
#include "profiles/device/kernels/measured.h"
#include "profiles/error.h"
#include "profiles/job/optimizer.h"

namespace ghostrank {
namespace {

constexpr double kLongestDelay = 1e6;  // seconds; beyond it the job's units are wrong

// Bytes per parameter that an fp32 optimizer step moves: it reads parameter, gradient and moments,
// and writes all but the gradient.
double optimizer_bytes(const Precision& precision) { return 4 * (3 + 2 * moments_of(precision)); }

// Bytes per parameter that other kernels of a step move: to clear the gradient; with mixed
// precision also for the gradient's norm, its scaling, and the parameter in its own type.
double around_the_optimizer(DataType parameters) {
  const double clearing = 4;
  return parameters == DataType::float32 ? clearing : clearing + 4 + 8 + bytes_of(parameters);
}

// Frameworks that step with PyTorch's own optimizers.
bool steps_by_pytorch(Framework framework) {
  return framework == Framework::ddp || framework == Framework::horovod ||
         framework == Framework::fsdp || framework == Framework::torchtitan;
}

// Times to compress are those of a V100 unless the job has others, and so are those of memories.
bool assumes_compression(const JobSpec& spec) {
  const std::optional<CompressionSpec>& compression = spec.compression;
  return compression && !(compression->measured_here && compression->memory == Memory::none);
}

// Tables and fits of another type say nothing of this job's products.
bool is_of_another_type(const DeviceProfile& device, OperandType type, bool by_kernels) {
  const bool measured = by_kernels && device.measured && device.measured->has_products(type);
  if (by_kernels && device.measured && !measured) return true;
  if (type == OperandType::fp8 && !measured) return device.calibrated_type != type;
  return device.calibrated_type &&
         peak_tflops(device, *device.calibrated_type) != peak_tflops(device, type);
}

}  // namespace

double stored_bytes(const JobSpec& spec) {
  const auto least = static_cast<double>(bytes_of(spec.precision.parameters));
  if (!is_replicated(spec.parallel.framework)) return 4;
  return std::max(least, static_cast<double>(bytes_of(spec.precision.gradients)));
}

ComputeModel::ComputeModel(const JobSpec& spec)
    : spec_(spec),
      flops_per_second_(matmul_peak_tflops(spec.device, spec.precision.parameters) * 1e12 *
                        spec.device.efficiency),
      fp8_flops_per_second_(peak_tflops(spec.device, OperandType::fp8) * 1e12 *
                            spec.device.efficiency),
      bytes_per_second_(spec.device.memory_GBps * 1e9) {
  if (const bool lacks_fp8 = spec.precision.fp8 && fp8_flops_per_second_ <= 0;
      lacks_fp8 || flops_per_second_ <= 0)
    throw Error(spec.source_of("device") + ": the device has no peak_tflops for " +
                (lacks_fp8 ? "fp8" : std::string(name_of(spec.precision.parameters))) +
                "; choose another device");
  if (computes_by_kernels(spec)) kernels_.emplace(spec.device, spec.precision.parameters);
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

Picoseconds ComputeModel::fp8_products(double flops, const std::string& what) const {
  return checked(flops / fp8_flops_per_second_, what);
}

Picoseconds ComputeModel::memory(double bytes, const std::string& what) const {
  return bytes_per_second_ > 0 ? checked(bytes / bytes_per_second_, what) : 0;
}

Picoseconds ComputeModel::on_device(const Kernels& kernels, const std::string& what) const {
  return checked(kernels.seconds, what);
}

Picoseconds ComputeModel::on_host(const Kernels& kernels) const {
  return checked(kernels.launches * spec_.device.kernels.host_us * 1e-6, "launching kernels");
}

Picoseconds ComputeModel::optimizer(double parameters) const {
  const Framework framework = spec_.parallel.framework;
  // FSDP's jobs clip gradients, the others that step by PyTorch do not.
  if (kernels_ && steps_by_pytorch(framework))
    return on_device(
        eager_optimizer(*kernels_,
                        {parameters, stored_bytes(spec_), spec_.precision.optimizer == "adam",
                         spec_.parallel.foreach_optimizer, !is_replicated(framework)}),
        "the optimizer");
  if (kernels_)
    return on_device(
        kernels_->memory(parameters * (optimizer_bytes(spec_.precision) +
                                       around_the_optimizer(spec_.precision.parameters))),
        "the optimizer");
  return memory(parameters * optimizer_bytes(spec_.precision), "the optimizer");
}

bool computes_by_kernels(const JobSpec& spec) {
  if (spec.device.multiprocessors == 0 || !spec.model || !spec.model->transformer) return false;
  const Transformer& m = *spec.model->transformer;
  return spec.model->architecture != "bert" && !m.is_latent() && m.mtp == 0;
}

Calibration compute_calibration(const JobSpec& spec) {
  if (!spec.jobs.empty()) {
    Calibration least = Calibration::measured;
    for (const JobOnNodes& one : spec.jobs) least = std::min(least, compute_calibration(*one.job));
    return least;
  }
  if (!spec.model) return Calibration::measured;
  if (assumes_compression(spec)) return Calibration::assumed;
  if (spec.model->measured) return Calibration::measured;
  const bool by_kernels = computes_by_kernels(spec) && spec.model->transformer->experts.count == 0;
  if (is_of_another_type(spec.device, operand_type(spec.device, spec.precision), by_kernels))
    return Calibration::assumed;
  return by_kernels || spec.device.multiprocessors == 0 ? spec.device.calibration
                                                        : Calibration::assumed;
}

}  // namespace ghostrank
