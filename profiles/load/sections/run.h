// The sections of a job that say how long it is played (`run`) and what it must not exceed
// (`safety`): turns checked settings into values.
//
// Errors: Error(usage) with its place. Threading: pure functions.
#pragma once

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

void read_run(const Settings& in, RunSpec& out);

// safety.max_rate_per_nic, in bits per second; 0: there is none.
double read_max_rate(const Setting& setting);

// The key that leaves the number of iterations open; empty: none does.
std::string_view key_of_open_end(const RunEnd& end);

}  // namespace ghostrank
