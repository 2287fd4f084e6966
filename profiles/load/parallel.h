// The `parallel` part of a job: whose plan the ranks follow, and its keys.
//
// Errors: usage, also for a key that the job's framework does not know. Threading: pure.
#pragma once

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

ParallelPlan read_parallel(const Settings& in);

}  // namespace ghostrank
