// Whether a job keeps below the most that a process may send from an interface
// (safety.max_rate_per_nic): sends beyond it wait, and then the run would show the cap, not the
// job.
//
// Units: bits per second. Threading: pure functions.
#pragma once

#include "emulator/traffic/traffic.h"
#include "profiles/job/job.h"

namespace ghostrank {

// The least dilation at which the emulated NICs that send through one interface, all at their rates
// at once, together send no faster than `stream_bps` (of the tightest SendCap); 0: there is no cap.
// NICs of unlimited rate count with what they send in a step on average.
double dilation_of_cap(const JobSpec& spec, const TrafficPlan& plan, int processes,
                       double stream_bps);

// Throws Error(usage) if the job gives a smaller dilation than that.
void check_cap(const JobSpec& spec, double least_dilation);

}  // namespace ghostrank
