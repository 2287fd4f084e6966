// Programs as Chakra execution traces (schema 0.0.4): a node per op, one file per rank.
//
// Streams become dependencies: an op comes after the one before it on its stream (with n workers,
// after the n-th one before it), and after what it waits for. Times are whole
// microseconds; what is rounded off one is added to the stream's next. Sizes are ASTRA-sim's, as
// the reader takes them (docs/traces.md).
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "profiles/workload/program.h"

namespace ghostrank {

// The trace of one rank: what it plays in the iteration of this number (as in Role::iterations; a
// role with fewer plays its last). Throws Error(usage) for what Chakra has no node for.
std::string chakra_trace(const Workload& workload, WorldRank rank, std::size_t iteration);

// {"dp.0": [0, 1, ...], ...}: the communicators that the traces name.
std::string chakra_groups(const Workload& workload);

}  // namespace ghostrank
