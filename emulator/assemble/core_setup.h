// What the processes of a job settle about cores before anything else runs: which CPUs each may
// use, who shares them, and which CPU each engine thread is kept on (rules: cores.h).
//
// Threading: the thread that owns `control`; every process calls it once.
#pragma once

#include <string>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/host/cores.h"
#include "emulator/result/result.h"
#include "profiles/job/job.h"

namespace ghostrank {

struct ProcessCores {
  std::vector<int> usable;  // of this process
  CorePlan plan;
};

// Throws Error(environment) when the job wishes for cores that this process was not given.
ProcessCores settle_cores(const JobSpec& spec, int threads, Control& control);

// Fills what a report says of cores.
void describe_cores(const ProcessCores& cores, HostReport& report);

}  // namespace ghostrank
