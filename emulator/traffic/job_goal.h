// One iteration of a whole job as GOAL text (collectives/exchange/goal.h), the input of LogGOPSim:
// every rank's program with its compute delays, events and streams, and every collective as the
// messages of its schedule.
//
// A computation is `calc` with its nanoseconds. A call has a tag of its own for every channel, so
// that calls which overlap are told apart; sends and receives of a kind of group share one, and are
// matched in their order. GOAL has no workers that take what comes next: of a stream that plays k
// collectives at once, the i-th waits for the one k before. It knows neither nodes nor NICs: what
// is sent inside a node is a message like any other, and latencies and rates are the simulator's.
// The iteration is alone: what its streams would carry into the next one (Program::outlives) is all
// in it, under nothing of the next one's.
//
// Threading: pure functions.
#pragma once

#include <iosfwd>

#include "profiles/job/job.h"

namespace ghostrank {

// The steady state unless another iteration is named. Throws Error(usage) for a job of more
// messages than kMostGoalMessages.
inline constexpr double kMostGoalMessages = 5e7;
void write_goal(std::ostream& out, const JobSpec& spec, const Workload& workload,
                int iteration = 1 << 30);

}  // namespace ghostrank
