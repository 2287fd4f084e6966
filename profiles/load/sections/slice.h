// The part of a cluster that is played (scale.mode: slice). Threading: plain values.
#pragma once

#include <vector>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

// The nodes of scale.nodes, of a cluster of `nodes`, ascending; empty: scale.mode is not slice.
std::vector<Node> read_slice(const Settings& in, int nodes);

// Refuses what a slice cannot play, by its key. `several`: the job is several jobs.
void check_slice(const Settings& in, const JobSpec& spec, bool several);

}  // namespace ghostrank
