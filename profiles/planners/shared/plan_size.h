// Estimates the memory of a job's programs before they are written, because every micro-batch adds
// its ops.
//
// Threading: pure, except that it reads this machine's free memory.
#pragma once

#include <functional>

#include "profiles/job/job.h"
#include "profiles/planners/shared/pipeline.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// `write(n)` writes the program of one of `roles` for n micro-batches. Throws Error(usage) if the
// programs for all micro-batches do not fit into this machine's memory.
void check_plan_size(const JobSpec& spec, const Pipeline& pipeline, std::size_t roles,
                     const std::function<Program(int micro_batches)>& write);

}  // namespace ghostrank
