// Which communicators concern other shards: those with members there, and those whose
// messages may cross links that other shards play.
//
// Threading: a pure function.
#pragma once

#include <vector>

#include "emulator/traffic/cluster.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// By index into Workload::groups. Every path between two members counts, whichever the routing
// takes. Where the paths are too many to look at, a communicator counts as leaving.
std::vector<bool> leaving_groups(const Workload& workload, const Cluster& cluster, Host host,
                                 int shard);

}  // namespace ghostrank
