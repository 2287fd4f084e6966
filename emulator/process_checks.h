// Whether a number of processes can play a job, asked before they meet.
//
// Errors: Error(usage). Threading: any thread.
#pragma once

#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// Throws for a job that cannot be spread over this number of processes, on whatever machines.
void check_spread(const JobSpec& spec, int processes);

// Also where this machine cannot play the job.
void check_processes(const JobSpec& spec, const Workload& workload, int processes);

}  // namespace ghostrank
