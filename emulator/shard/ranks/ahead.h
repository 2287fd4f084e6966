// Whether ranks may run ahead of the clock: virtual time only.
//
// What a rank does between two calls that leave its node depends on its node alone: delays, events
// between its streams, calls inside the node, which end for all members when the last one has come,
// and transfers between lone ports. So none of these needs an event of the shard. A rank plays them
// at once, at times that the clock has not reached, and a stream waits for the clock where others
// can notice: before a call that leaves the node, and at its end.
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

// False where the order in which a rank's streams are played matters: run.compute_slowdown (a delay
// depends on the calls in flight), several workers, streams that outlive their iteration, or
// collectives of one kind of group on several streams (their order numbers them). False for agents,
// too.
bool may_run_ahead(const JobSpec& spec, const Workload& workload, const Cluster& cluster);

}  // namespace ghostrank
