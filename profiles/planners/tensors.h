// What a job says of the content of its tensors: `tensors:`.
//
// Threading: pure functions.
#pragma once

#include <optional>

#include "collectives/tensor_content.h"
#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Empty where no block is zero.
std::optional<Sparsity> read_tensors(const Settings& in);

// Throws Error(usage) where the job has `tensors:` and its programs name none, or the ranks of a
// communicator cannot hold them as is said.
void check_tensors(const JobSpec& spec, const Workload& workload);

}  // namespace ghostrank
