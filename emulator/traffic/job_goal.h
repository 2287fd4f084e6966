// Writes one iteration of a whole job as GOAL text (collectives/exchange/goal.h), the input of
// LogGOPSim: every rank's program with its compute delays, events and streams, and every collective
// as the messages of its schedule.
//
// A computation is `calc` with its nanoseconds. Each call has its own tag per channel, so that
// overlapping calls stay apart; sends and receives within a kind of group share one tag per channel
// and match in order. GOAL has no workers that take the next operation: in a stream that plays k
// collectives at once, the i-th waits for the one k before it. GOAL knows neither nodes nor NICs: a
// message inside a node is a message like any other, and the simulator sets latencies and rates.
// The iteration stands alone: communication that its streams would carry into the next iteration
// (Program::outlives) is wholly in it and overlaps nothing of the next one.
//
// Threading: pure functions.
#pragma once

#include <iosfwd>
#include <optional>

#include "profiles/job/job.h"

namespace ghostrank {

// `iteration`: the program of that number, by default the steady one. Returns whether messages wait
// for room or permission of their receivers, which GOAL does not have: there they leave at once,
// and their senders go on. Throws Error(usage) for a job of more than kMostGoalMessages messages,
// and for an iteration with calls by schemes, whose agents have no schedule.
inline constexpr double kMostGoalMessages = 5e7;
bool write_goal(std::ostream& out, const JobSpec& spec, const Workload& workload,
                std::optional<int> iteration = std::nullopt);

}  // namespace ghostrank
