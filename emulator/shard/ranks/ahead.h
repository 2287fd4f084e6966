// Whether ranks may run ahead of the clock: virtual time only.
//
// What a rank does between two calls that leave its node depends on its node alone: delays, events
// between its streams, and calls inside the node, which end for all members when the last one has
// come. So none of these needs an event of the shard. A rank plays them at once, at times that the
// clock has not reached, and a stream waits for the clock where others can notice: before a call
// that leaves the node, and at its end.
//
//   event by event   ─ delay ends ─ call ends ─ delay ends ─ call ends ─ delay ends ─ sends
//   ahead            ─────────────────────────────────────────────────────────────── sends
//
// Threading: a pure function.
#pragma once

#include "emulator/traffic/cluster.h"
#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// False where what a rank does depends on the order in which its streams are played: a delay on
// what is in flight (run.compute_slowdown), a call on a free worker or the last iteration, the
// number of a call inside a node on other streams that make such calls, too; and for agents and
// verified runs.
bool may_run_ahead(const JobSpec& spec, const Workload& workload, const Cluster& cluster);

}  // namespace ghostrank
