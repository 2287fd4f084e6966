// How long a GPU computes: matrix products take FLOPs / (peak of the type * efficiency),
// memory-bound work takes bytes / bandwidth. The layers of transformers on a device with
// multiprocessors are computed kernel by kernel instead (profiles/device/kernels/of_layer.h).
//
// Units: FLOPs (a multiply-add is 2), bytes, picoseconds. Errors: Error(usage) if the device lacks
// the data type, or if the work would take more than 1e6 s. Threading: plain values.
#pragma once

#include <optional>
#include <string>

#include "profiles/device/kernels/kernels.h"
#include "profiles/job/job.h"
#include "profiles/model/model.h"

namespace ghostrank {

class ComputeModel {
 public:
  explicit ComputeModel(const JobSpec& spec);  // `spec` must outlive it

  // `what` names the work in errors: "the forward of h.3".
  Picoseconds products(double flops, const std::string& what) const;
  Picoseconds fp8_products(double flops, const std::string& what) const;  // of a job with fp8
  Picoseconds memory(double bytes, const std::string& what) const;
  Picoseconds optimizer(double parameters) const;

  // Empty if the model is computed by FLOPs.
  const std::optional<KernelModel>& kernels() const { return kernels_; }
  // A kernel's or several kernels' time on the GPU; the host's time to launch them.
  Picoseconds on_device(const Kernels& kernels, const std::string& what) const;
  Picoseconds on_host(const Kernels& kernels) const;

 private:
  Picoseconds checked(double seconds, const std::string& what) const;

  const JobSpec& spec_;
  double flops_per_second_ = 0, fp8_flops_per_second_ = 0, bytes_per_second_ = 0;
  std::optional<KernelModel> kernels_;
};

// Bytes of an element of the weights that the optimizer steps. Replicated weights have the larger
// type of products and gradients (autocast if the two differ); sharded weights are float32.
double stored_bytes(const JobSpec& spec);

// Whether planners compute attention and dense feed-forward layers of this model kernel by kernel
// on this device. Of experts, Megatron's are, too; others are computed by FLOPs.
bool computes_by_kernels(const JobSpec& spec);

// How well a job's compute times are founded: those of a measured model, program or trace are
// measured; times by kernels, and by FLOPs on a device without kernels, are as the device says;
// those by FLOPs on a device with kernels and those of experts are assumed, and so are those of
// types that the device is not calibrated for, and of compression whose costs were not measured on
// the device. A calibration is of fp8 only if its calibrated_type or its table of products says so.
Calibration compute_calibration(const JobSpec& spec);

}  // namespace ghostrank
