// Checks that a rank's share of the model fits its device, for frameworks that spread a whole model
// over data-parallel ranks; the Megatron and TorchRec planners have checks of their own.
//
// Counts weights, gradients, optimizer state and the largest unit gathered at a time, but no
// activations, so a plan that passes may still not fit. Bytes per parameter, with w: a weight in
// the parameters' type, m: its fp32 copy (4 if that type is not fp32, else 0), g: a gradient, o:
// moments:
//
//   ddp, horovod         4 + g + o
//   fsdp, torchtitan     4 + g + o, all sharded
//   zero1                w + w + m + o, the last two sharded
//   zero2                w + w + m + o, the last three sharded
//   zero3                w + w + m + o, all sharded
//
// Errors: Error(usage), with a change that fits. Threading: pure functions.
#pragma once

#include "profiles/job/job.h"

namespace ghostrank {

// Does nothing for a device without memory_bytes, for a measured model, and for frameworks with
// their own check.
void check_state_memory(const JobSpec& spec);

}  // namespace ghostrank
