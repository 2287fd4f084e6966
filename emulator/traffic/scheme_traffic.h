// What the parties of a scheme's call would send each other, as a plan counts it.
//
// Units: bytes and messages per call. Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/agent.h"
#include "profiles/job/job.h"

namespace ghostrank {

// The traffic of a call of the collective, of which a party has `elements`. Where densities change
// from iteration to iteration, it is the mean of those that a run measures: sums are lists where
// they are sparse and whole where they are not, so the traffic of a mean density is another.
std::vector<Ends::Edge> scheme_traffic(const JobSpec& all, const Workload& workload, const Op& op,
                                       const Ends& ends, const Collective& collective,
                                       std::uint64_t elements);

}  // namespace ghostrank
