// How much this machine can send, measured shortly before a run, and the dilation that a job then
// needs.
//
// Units: bytes, seconds. Threading: the thread that owns `control`; measure_engine() and needs_of()
// on any.
#pragma once

#include <chrono>

#include "emulator/control/control.h"
#include "emulator/fabric/fabric.h"
#include "emulator/result/result.h"
#include "emulator/traffic/flows.h"
#include "emulator/traffic/traffic.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Measures, for about `milliseconds`, how many payload bytes per second a process sends to its
// right neighbour while it receives from its left one, over the flows of its first shard in turn.
// All processes call it at once; each stays awake for `spin` before it blocks. Returns the rate of
// the slowest process; 0 if stopped or if no neighbours have flows. Fails the run if nothing moves
// for `patience_s` seconds.
double measure_wire(Control& control, const Flows& flows, Fabric& fabric, std::uint64_t nonce,
                    int milliseconds, std::chrono::nanoseconds spin, double patience_s);

// Seconds that the engine spends per message, measured with a small ring all-reduce in virtual
// time.
double measure_engine();

// Returns the needs of the busiest process and the dilation that follows, of a play of so many
// iterations. The `threads` of a process share its messages evenly; they do not make bytes faster.
Capacity needs_of(const JobSpec& spec, const TrafficPlan& plan, int processes, int threads,
                  double wire_bytes_per_second, double seconds_per_message, int iterations = 1);

}  // namespace ghostrank
