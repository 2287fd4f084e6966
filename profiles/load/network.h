// What lies between the nodes of a job (`cluster.topology`), and where its servers are
// (`servers.placement`): names become rows, and what does not fit together is refused.
//
// Threading: pure functions.
#pragma once

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

// `own`: what plugins bring. The cluster's other values are there already. Throws Error(usage).
void read_server_placement(const Settings& in, const Algorithms& own, ServerSpec& out);
void read_topology(const Settings& in, const Algorithms& own, ClusterSpec& out);

}  // namespace ghostrank
