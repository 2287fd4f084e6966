// The memory of one GPU under a Megatron plan, stage by stage.
//
// Weights, gradients and optimizer state follow from the parameters that a rank holds; a
// distributed optimizer shards its state over the ranks that hold the same parameters. Activations
// follow Korthikanti et al. (2022), counted tensor by tensor, so that gated feed-forward layers,
// grouped queries, fused attention and experts have their own sizes: per layer of GPT with unfused
// attention, 34 s b h + 5 a s^2 b bytes. A stage keeps them for as many micro-batches as its
// schedule has begun and not ended.
//
// Not counted: temporary buffers, fragmentation, the CUDA context and communicators' buffers.
// Threading: pure functions.
#pragma once

#include "profiles/planners/megatron/plan.h"
#include "profiles/planners/shared/gpu_memory.h"

namespace ghostrank {

// Bytes that one layer keeps from the forward pass of a micro-batch to its backward pass, if
// experts get equally many rows.
double megatron_layer_activations(const MegatronPlan& plan, bool has_experts);

// The memory of the fullest GPU of this stage, by the job's choice of optimizer and recomputation.
GpuMemory megatron_memory(const MegatronPlan& plan, int stage);

// The memory of a GPU of the fullest stage.
GpuMemory megatron_memory(const MegatronPlan& plan);

}  // namespace ghostrank
