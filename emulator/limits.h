// What a run of a job can and cannot say, before it is played.
//
// Threading: pure functions; limits_of reads the environment.
#pragma once

#include <string>
#include <vector>

#include "emulator/traffic/cluster.h"

namespace ghostrank {

// Notes of a result about what the run leaves out or assumes. `wired`: messages, or schemes'
// packets, cross a real network; `flows`: messages do.
std::vector<std::string> limits_of(const JobSpec& spec, const Workload& workload,
                                   const Cluster& cluster, bool wired, bool flows);

// Whether nothing of a step varies by chance. A seed repeats lost packets as it repeats jitter, yet
// the next step has others.
bool is_deterministic(const JobSpec& spec, const Workload& workload, const Cluster& cluster);

}  // namespace ghostrank
