// The `collectives` section of a job: names become rows. What its library does not know of is
// refused by load/idle_keys.h.
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
