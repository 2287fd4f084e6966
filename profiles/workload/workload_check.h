// Checks before a job starts that its programs fit together: all members of a communicator make its
// calls in the same order, every send has a receive, every receive has a send, one stream records
// an event and one other waits for it, and no stream waits for ever.
//
// Ranks of one role behave alike, so the check plays roles instead of ranks: one copy of each role,
// and one of each pattern of roles that a communicator has. In a pipeline the stages of one role
// wait for each other, so that the role alone seems to wait for ever; the check then plays such
// roles in parts, a stage each. Collectives wait for all members, sends
// do not block, receives wait for their send; nothing takes time. The check plays each iteration
// alone; carry_check.h checks waits between iterations. Of a body that is repeated many times
// (OpList::repeat) it plays a few repetitions, because all roles of a job repeat their bodies
// equally often, or have none. Threading: pure.
#pragma once

#include <string>

#include "profiles/workload/program.h"

namespace ghostrank {

// Throws Error(usage) that names the roles and ops in question. `source` says where the programs
// were written ("FILE:LINE:COL"); it is empty for a planner's.
void check_workload(const Workload& workload, const std::string& source = "");

}  // namespace ghostrank
