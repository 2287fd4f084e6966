// The section of a job that says how long it is played (`run`): turns checked settings into values.
//
// Errors: Error(usage) with its place. Threading: pure functions.
#pragma once

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

void read_run(const Settings& in, RunSpec& out);

// The key that leaves the number of iterations open; empty: none does.
std::string_view key_of_open_end(const RunEnd& end);

}  // namespace ghostrank
