// A trace as programs: what `trace:` in a job plays.
//
// Every rank of the trace gets the streams that its graph needs, so that whatever fans out runs
// side by side: one for each lane of computations and each communicator, whose calls take turns,
// and for messages as many as run side by side, up to kMostMessageStreams. Events tie them
// together; an edge that other edges imply is left out. Ranks that the trace does not have play as
// one that it has. Threading: pure.
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
  int ranks = 0;  // of the job; 0: as many as the trace says or names
  // Time of a computation of which only FLOPs and bytes through memory are known; empty: refused.
  std::function<Picoseconds(double flops, double bytes)> cost;
};

struct Replay {
  Workload workload;
  std::vector<std::string> notes;  // what was assumed, for people
};

// Throws Error(usage) where the trace does not fit together or does not say of how many ranks it
// is.
Replay replay(const Trace& trace, const ReplayOptions& options);

// Ranks that the trace says or names: one more than the highest.
int ranks_named(const Trace& trace);

// Whether the trace says of how many ranks the job was.
bool knows_ranks(const Trace& trace);

}  // namespace ghostrank
