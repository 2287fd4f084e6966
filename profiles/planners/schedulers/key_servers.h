// BytePS and PHub as Programs: every tensor is a call of its own, which the framework's scheme
// plays (collectives/schemes/keyed/keyed.h).
//
//   compute   | fwd 0 | .. | fwd n | bwd n | .. | bwd 0 |  wait | step |
//   comm                           [tensors of n][..  ][tensors of 0]     up to 64 calls together
//
// Tensors are declared in the order of the forward, so their keys have this order, and tensors that
// wait at a node leave in the order in which the next forward needs them. As with PyTorch, a step
// waits for all tensors; then the GPUs step the weights (byteps), or the servers have done so
// (phub). `launch: after_backward` makes all calls after the backward, so that their time is
// exposed. Threading: pure functions.
#pragma once

#include "profiles/job/job.h"

namespace ghostrank {

Workload plan_key_servers(const JobSpec& spec);

}  // namespace ghostrank
