// The `collectives` section of a job: names become rows, and what a library does not know of is
// refused.
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
