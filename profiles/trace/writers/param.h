// Programs as PARAM's basic comms traces: a JSON list of calls per rank.
//
// Every call is started without waiting, in the order of issue_order.h, which ranks share, and
// awaited where the next op needs it to be over. PARAM has no computation of a given time:
// computations are in `startTime_ns`, the sum of those on the longest way to the call, and
// communication adds nothing to it. Sizes are elements of one rank's buffers, roots and peers ranks
// of the job.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "profiles/trace/writers/issue_order.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// The trace of one rank; `orders` are of the workload. Throws Error(usage) for calls that PARAM
// does not have.
std::string param_trace(const Workload& workload, const IssueOrders& orders, WorldRank rank);

}  // namespace ghostrank
