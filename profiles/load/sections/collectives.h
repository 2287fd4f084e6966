// The `collectives` section of a job: turns names into rows of algorithms. load/idle_keys.h refuses
// keys that the job's library does not know.
//
// Threading: reads plugins and MSCCL files, keeps no state.
#pragma once

#include <string>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

// `near` is the folder of the job. Throws Error(usage).
CollectiveSpec read_collectives(const Settings& in, const std::string& near);

}  // namespace ghostrank
