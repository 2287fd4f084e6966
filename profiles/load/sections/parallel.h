// The `parallel` section of a job: the framework whose plan the ranks follow, and its keys.
//
// Errors: Error(usage). Threading: pure.
#pragma once

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

ParallelPlan read_parallel(const Settings& in);

}  // namespace ghostrank
