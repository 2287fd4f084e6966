// How large the programs of a job will be, before they are written: every micro-batch adds its ops.
//
// Threading: pure, but for what the machine has.
#pragma once

#include <functional>

#include "profiles/job/job.h"
#include "profiles/planners/shared/pipeline.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// `write` writes the program of one of `roles` for fewer micro-batches, as many as it is told.
// Throws Error(usage) where those of all micro-batches do not fit into this machine.
void check_plan_size(const JobSpec& spec, const Pipeline& pipeline, std::size_t roles,
                     const std::function<Program(int micro_batches)>& write);

}  // namespace ghostrank
