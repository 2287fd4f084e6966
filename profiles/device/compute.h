// How long a GPU computes: matrix products take FLOPs / (peak of the type * efficiency), what is
// bound by memory takes bytes / bandwidth.
//
// Units: FLOPs (a multiply-add is two), bytes, picoseconds. Errors: usage, where the device cannot
// do what is asked or would take absurdly long. Threading: plain values.
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
