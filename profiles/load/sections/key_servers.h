// Frameworks whose gradients go through servers with keys
// (collectives/schemes/keyed/key_schemes.h): which scheme plays their calls, and its options.
// Threading: pure functions of their arguments.
#pragma once

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Names the scheme; does nothing for other frameworks. Throws Error(usage) for keys that do not fit
// the framework.
void read_key_servers(const Settings& in, JobSpec& spec);
// Sets the scheme's options. Call it when the placement of servers is known: refuses more servers
// beside GPUs than nodes.
void settle_key_servers(const Settings& in, JobSpec& spec);

// Gives the job's compression to BytePS's servers and roots instead of a planner; does nothing for
// other frameworks. Throws Error(usage) for methods and modes that BytePS cannot have.
void compress_at_servers(const Settings& in, JobSpec& spec);

// Returns the schemes' options by the plan. `places`: the number of servers.
AtServers key_server_options(const ParallelPlan& plan, int places);

}  // namespace ghostrank
