// How long a GPU computes: matrix products take FLOPs / (peak of the type * efficiency),
// memory-bound work takes bytes / bandwidth.
//
// Units: FLOPs (a multiply-add is 2), bytes, picoseconds. Errors: Error(usage) if the device lacks
// the data type, or if the work would take more than 1e6 s. Threading: plain values.
#pragma once

#include <string>

#include "profiles/job/job.h"

namespace ghostrank {

class ComputeModel {
 public:
  explicit ComputeModel(const JobSpec& spec);  // `spec` must outlive it

  // `what` names the work in errors: "the forward of h.3".
  Picoseconds products(double flops, const std::string& what) const;
  Picoseconds memory(double bytes, const std::string& what) const;
  Picoseconds optimizer(double parameters) const;

 private:
  Picoseconds checked(double seconds, const std::string& what) const;

  const JobSpec& spec_;
  double flops_per_second_ = 0, bytes_per_second_ = 0;
};

}  // namespace ghostrank
