// Programs as a workload of SimAI: one table of rows, which every rank plays
// (HYBRID_TRANSFORMER_FWD_IN_BCKWD).
//
// A pass is the rows' forward part from the first to the last, each computation followed by a call
// that blocks, then their backward part from the last to the first, where calls of weight gradients
// do not block. So the ops until the first call that overlaps computation become forward rows, all
// others backward rows in reverse. What follows at the end on overlapping calls must be a chain:
// its calls overlap, too, and its computations are the update time of the last call. Times are
// whole nanoseconds, rounded. Sizes are SimAI's, as the reader takes them (docs/traces.md).
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "profiles/workload/program.h"

namespace ghostrank {

// What the ranks play in the iteration of this number (as in Role::iterations). Throws Error(usage)
// for programs that SimAI cannot say: ranks that differ, messages between ranks, two
// streams that compute, broadcasts of other members than the first, an overlapping call that is
// awaited before the end, communicators other than blocks of neighbours and strides over them.
std::string simai_workload(const Workload& workload, std::size_t iteration);

}  // namespace ghostrank
