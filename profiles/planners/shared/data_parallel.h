// Common parts of the data-parallel planners: every rank computes the whole model on its own
// samples, and all ranks are one group.
//
// Threading: pure functions.
#pragma once

#include <vector>

#include "profiles/job/job.h"
#include "profiles/model/model.h"

namespace ghostrank {

inline constexpr std::uint16_t kDataParallel = 0;  // kind of the group of all ranks

StepTimes step_times(const JobSpec& spec);

// True if DDP copies gradients into its buckets. A single rank's script has no DDP.
bool copies_gradients(const JobSpec& spec);

// Throws Error(usage) unless parallel.dp is all GPUs.
void check_data_parallel(const JobSpec& spec);

// A workload with one role, which all ranks play, and the group of all ranks.
Workload data_parallel_workload(const JobSpec& spec, Role role);
// Likewise, but rank r plays role r modulo their number.
Workload data_parallel_roles(const JobSpec& spec, std::vector<Role> roles);

}  // namespace ghostrank
