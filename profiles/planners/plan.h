// The plan of a job: its programs, roles and groups. Threading: pure functions.
#pragma once

#include <optional>

#include "profiles/job/job.h"
#include "profiles/planners/pipeline/pipeline.h"

namespace ghostrank {

// The programs, roles and groups of the job. Throws Error(usage) if the plan does not fit the
// cluster.
Workload plan_workload(const JobSpec& spec);

// The pipeline of the job; empty if it has one stage. Throws Error(usage) if the plan does not fit.
std::optional<Pipeline> pipeline_of(const JobSpec& spec);

}  // namespace ghostrank
