// Whether what a rank keeps of its model fits its device, for frameworks that share a whole model
// among data-parallel ranks; Megatron's and TorchRec's plans have checks of their own.
//
// Weights, gradients, the optimizer's state, and the largest unit gathered at a time; activations
// are left out, so a plan that passes may still not fit. Bytes of a parameter, with weights of the
// products' type w (fp32 ones too where that is another: m = 4, else 0), gradients g, moments o:
//
//   ddp, horovod, fsdp, torchtitan   4 + g + o, the last two shared by those that shard
//   zero1, zero2, zero3              w + w + m + o, of which the last two, three, all are shared
//
// Errors: usage, with what fits. Threading: pure functions.
#pragma once

#include "profiles/job/job.h"

namespace ghostrank {

// Does nothing where the device's memory, or what the model is made of, is not known.
void check_state_memory(const JobSpec& spec);

}  // namespace ghostrank
