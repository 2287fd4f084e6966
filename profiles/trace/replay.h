// Turns a trace into programs: what a job's `trace:` plays.
//
// Every rank of the trace gets the streams that its graph needs, so that independent events run
// concurrently: one per track of computations, one per communicator, whose calls take turns, and
// for messages as many as run concurrently, up to kMostMessageStreams. Events tie streams together;
// an edge that other edges imply is left out. Ranks without a trace play as one that has a trace.
// Threading: pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profiles/trace/trace.h"
#include "profiles/workload/program.h"

namespace ghostrank {

inline constexpr std::size_t kMostMessageStreams = 64;
inline constexpr int kMaxReplayRanks = 1 << 20;

struct ReplayOptions {
  int ranks = 0;  // of the job; 0: as the trace says or names
  // Time of a computation whose FLOPs and bytes through memory are known, but not its time; empty:
  // such computations are refused.
  std::function<Picoseconds(double flops, double bytes)> cost;
};

struct Replay {
  Workload workload;
  std::vector<std::string> notes;  // assumptions, for people
};

// Throws Error(usage) if the trace contradicts itself, or if neither it nor `options` says how many
// ranks the job had.
Replay replay(const Trace& trace, const ReplayOptions& options);

// The number of ranks that the trace gives, or one more than the highest rank that it names.
int ranks_named(const Trace& trace);

// True if the trace says how many ranks the job had.
bool knows_ranks(const Trace& trace);

}  // namespace ghostrank
