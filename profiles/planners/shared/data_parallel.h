// Common parts of the data-parallel planners: every rank computes the whole model on its own
// samples, and all ranks are one group.
//
// Threading: pure functions.
#pragma once

#include <vector>

#include "profiles/job/job.h"

namespace ghostrank {

inline constexpr std::uint16_t kDataParallel = 0;  // kind of the group of all ranks

struct LayerTime {
  Picoseconds forward = 0, backward = 0;
};

// Compute times of a rank in one step; the optimizer steps over all parameters.
struct StepTimes {
  std::vector<LayerTime> layers;
  Picoseconds optimizer = 0;
};
StepTimes step_times(const JobSpec& spec);

// Throws Error(usage) unless parallel.dp is all GPUs.
void check_data_parallel(const JobSpec& spec);

// A workload with one role, which all ranks play, and the group of all ranks.
Workload data_parallel_workload(const JobSpec& spec, Role role);

}  // namespace ghostrank
