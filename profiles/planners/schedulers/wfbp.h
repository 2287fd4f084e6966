// Wait-free backpropagation as Programs: gradients are all-reduced while the backward runs, a call
// for each tensor (wfbp), or calls merged by MG-WFBP's rule (mgwfbp, fusion.h).
//
//   compute | fwd .. fwd | bwd n | bwd n-1 | .. | bwd 0 |          | optimizer |
//   comm                         [ n ][ n-1, n-2 ]      [ 0 ]
//
// All gradients of a module are ready when its backward ends; calls go out in that order, the last
// tensor first, on one stream. The optimizer starts when all have ended. Threading: pure functions.
#pragma once

#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

Workload plan_wfbp(const JobSpec& spec);

}  // namespace ghostrank
