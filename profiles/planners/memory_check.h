// The memory of a job's fullest GPU, and whether it fits the device.
//
// Megatron's is counted stage by stage with its activations (megatron/memory.h), and its planner
// checks it. For the other frameworks these count: weights, gradients, optimizer state, the units
// gathered at a time (the largest, beside a table that the head shares; all, if FSDP keeps them
// after a pass; ZeRO-3's by its reuse distance and prefetch), and activations of transformers and
// convolutional networks (model/convolutional.h). In TorchTitan's pipelines these are those of the
// fullest stage: of its layers, and of as many micro-batches as it has begun. These do not count,
// so a plan that passes may still not fit: activations of recommendation and recurrent models
// (LSTMs), temporary buffers and fragmentation. Bytes per parameter, with w: a weight in the
// parameters' type, m: its fp32 copy (4 if that type is not fp32, else 0), s: a stored weight
// (stored_bytes() in device/compute.h), g: a gradient, o: fp32 moments:
//
//   ddp                  s + 2 g + s o / 4, as its buckets are copies of the gradients; one g with
//                        gradient_as_bucket_view, or on a single rank
//   horovod, ...         s + g + s o / 4
//   kfac                 likewise, and factors and inverses (kfac/kfac.h)
//   phub                 s + g, as its servers keep the momentum
//   fsdp, torchtitan     4 + 4 + o, all sharded
//   zero1                w + w + m + o, the last two sharded
//   zero2                w + w + m + o, the last three sharded
//   zero3                w + w + m + o, all sharded
//
// Errors: Error(usage), with a change that fits. Threading: pure functions.
#pragma once

#include <optional>

#include "profiles/job/job.h"
#include "profiles/planners/shared/gpu_memory.h"

namespace ghostrank {

// Empty for programs, measured models and TorchRec, whose planner has a check of its own.
std::optional<GpuMemory> gpu_memory(const JobSpec& spec);

// Does nothing for a device without memory_bytes, where gpu_memory() says nothing, and for
// Megatron.
void check_state_memory(const JobSpec& spec);

}  // namespace ghostrank
