// Plays a job in this process without a word: for verbs that need a result, not a run.
//
// Threading: main thread.
#pragma once

#include "emulator/result/result.h"
#include "profiles/load/load.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// Throws Error, also for a run that was stopped.
Result play_quietly(const LoadedJob& job, const Workload& workload);

}  // namespace ghostrank
