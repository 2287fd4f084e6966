// What the processes of a job settle about cores before anything else runs: which CPUs each process
// may use, which processes share them, and which CPUs each engine thread is bound to (rules:
// emulator/host/cores.h).
//
// Threading: the thread that owns `control`; every process calls settle_cores() once.
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

// Throws Error(environment) if the job asks for cores that this process was not given.
ProcessCores settle_cores(const JobSpec& spec, int threads, Control& control);

// Fills the fields of `report` that concern cores.
void describe_cores(const ProcessCores& cores, HostReport& report);

}  // namespace ghostrank
