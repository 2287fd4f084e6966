// Whether the programs of a job fit together, found out before it starts: no communicator entered
// in different orders by two ranks, nothing received that nobody sends, nor sent that nobody
// receives, nobody waiting for ever.
//
// Ranks of one role behave alike, so the check plays roles, not ranks: one copy of every role and
// one of every pattern of roles that some communicator has. Collectives wait for all members, sends
// go ahead, receives wait for their send; nothing takes time. Every iteration is played alone; what
// it leaves to the next one is looked at apart (carry_check.h). Threading: pure.
#pragma once

#include <string>

#include "profiles/workload/program.h"

namespace ghostrank {

// Throws Error(usage) that names the roles and ops in question; `place` is where the programs were
// written ("FILE:LINE:COL"), empty for a planner's.
void check_workload(const Workload& workload, const std::string& place = "");

}  // namespace ghostrank
