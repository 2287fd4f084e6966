// Whether the packets of schemes wait long enough for their answers: a time-out below the round
// trip of those in flight sends packets again that are not lost.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "emulator/traffic/cluster.h"
#include "profiles/job/job.h"

namespace ghostrank {

// A note for each time-out that is shorter than the round trip, on an idle network without links
// between switches, of the packets that all groups have in flight in the largest call.
std::vector<std::string> short_time_outs(const JobSpec& spec, const Workload& workload,
                                         const Cluster& cluster);

}  // namespace ghostrank
