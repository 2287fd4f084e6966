// Megatron-core as Programs: tensor, sequence, pipeline, context and data parallelism with the
// distributed optimizer; one Program per pipeline stage, which all its ranks share.
//
// A stage's step: its passes in the order of the pipeline schedule (pipeline/pipeline.h), each as
// ops (megatron/passes.h); a bucket's gradients are reduced when the last micro-batch's backward
// has completed them; then the small reductions, the optimizer, the gather of parameters. With
// overlap_param_gather the gather runs beside the next step's first forward; the program of the
// very first step gathers too, where Megatron broadcasts.
//
// Not played: the broadcasts of the batch inside a tensor-parallel group, and everything before the
// first step. Threading: pure functions.
#pragma once

#include "profiles/job/job.h"

namespace ghostrank {

// Throws Error(usage) if the plan does not fit the model, the cluster or the device.
Workload plan_megatron(const JobSpec& spec);

}  // namespace ghostrank
