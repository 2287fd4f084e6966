// DeAR as Programs: every all-reduce is split into a reduce-scatter under the backward pass and an
// all-gather under the next forward pass, on two communicators.
//
//   compute        | fwd 0 | fwd 1 | fwd 2 | bwd 2 | bwd 1 | bwd 0 |     | fwd 0 | fwd 1 | ...
//   reduce_scatter                                 [ RS 2 ][ RS 1 ][ RS 0]
//   all_gather     [AG 0][ AG 1 ][ AG 2 ]                               [ AG 0 ][ AG 1 ] ...
//   iteration  i                                                        | i + 1
//
// Groups of modules are fused (fusion.h). A group is reduce-scattered when the backward of its
// modules has ended. When the backward has ended and all groups are scattered, the iteration ends
// and group 0 is gathered, which outlives it. The forward waits for a group before its first module
// and then starts to gather the next one: one gather ahead at most. Modules without parameters wait
// for no gather, and no scatter waits for those in front of its group's first parameters.
// Parameters are stepped module by module in front of their forward. A group is padded by P minus
// its elements modulo P, and so by a whole P where P divides them. The very first forward has
// nothing to gather.
//
// The rules follow the authors' published code (dear_pytorch), with all gradients of a module ready
// when its backward ends. `decouple: reduce` plays a reduce to rank 0 and a broadcast in place of
// both halves, without padding; that their root is rank 0 is assumed. Threading: pure functions.
#pragma once

#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

Workload plan_dear(const JobSpec& spec);

}  // namespace ghostrank
