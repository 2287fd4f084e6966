// What this machine can source, measured in a moment before a run, and the dilation that a job then
// needs.
#pragma once

#include <chrono>

#include "emulator/control/control.h"
#include "emulator/fabric/fabric.h"
#include "emulator/result/result.h"
#include "emulator/traffic/flows.h"
#include "emulator/traffic/traffic.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Payload bytes per second that each process sends to its right neighbour while it receives as much
// from its left one, over the flows of its first shard in turn; all processes measure at once, for
// about `milliseconds`, awake for `spin` before they block. The slowest process counts. 0 if
// stopped, or where no neighbours have flows. Where nothing moves for `patience_s` the run fails.
double measure_wire(Control& control, const Flows& flows, Fabric& fabric, std::uint64_t nonce,
                    int milliseconds, std::chrono::nanoseconds spin, double patience_s);

// Seconds that the engine spends on one message, from a small ring all-reduce in virtual time.
double measure_engine();

// Fills the needs of the busiest process and the dilation that follows. `threads` of a process
// share its messages evenly; bytes do not go faster by them.
Capacity needs_of(const JobSpec& spec, const TrafficPlan& plan, int processes, int threads,
                  double wire_bytes_per_second, double seconds_per_message);

}  // namespace ghostrank
