// PyTorch's FSDP2 (fully_shard) as Programs: every layer, the embeddings and the head are units,
// whose parameters are sharded over all ranks or over groups of them. Embeddings and a head that
// share a table are one unit, which stays from the embeddings to the head, as in TorchTitan.
//
//   compute |     | F0 | F1 | F2 |     | B2 | B1 | B0 | optimizer |
//   comm    | AG0 | AG1 | AG2 |   | AG2 | AG1 | RS2, AG0 | RS1 | RS0 |
//
// A unit's parameters are gathered before its forward, freed after it, and gathered again before
// its backward; then its gradients are reduce-scattered. While compute waits for a unit, the
// gathers of the next `parallel.prefetch` units are already launched. `reshard_after_forward`
// selects the units that are freed: by default all with framework fsdp, all but the last with
// torchtitan, and none in a pipeline, as in TorchTitan's own default. The rules follow
// torch/distributed/fsdp/_fully_shard. The shards have one communicator, so gathers and scatters
// share a stream. Copies, where kernels are computed one by one: a unit's shards into the gather's
// buffer (in front of the gather), its tensors out of it, gradients into the scatter's buffer (both
// between the passes).
//
// Hybrid sharding (HSDP, `dp_replicate` above 1): neighbouring ranks share a whole model; ranks
// with the same shards all-reduce them after each scatter, on a stream of their own.
//
// fsdp/layers.h and fsdp/mesh.h hold TorchTitan's tensor, context and expert parallelism and its
// activation checkpointing. Norms are whole on every tensor-parallel rank. Their gradients are
// summed once per step, where PyTorch sums them layer by layer, and three times in fp32 if nothing
// is sharded. Under expert parallelism the routed experts are gathered and scattered over the ranks
// of their own mesh.
//
// TorchTitan's pipelines: stages and schedules of torch.distributed.pipelining, layers spread by
// TorchTitan's rule (pipeline/layer_split.h). Parameters stay after a backward until the step's
// end; a chunk's gradients are reduced after its last backward. A stage of several chunks gathers
// those that come next, at most three, a chunk at a time. Activations and gradients have a
// communicator each, where PyTorch has one for both.
//
// Shards are of a tensor's first dimension, padded to the largest of them. Without a pipeline every
// micro-batch reduces its gradients. One call computes the norm of the gradients of all tensors.
// Threading: pure.
#pragma once

#include "profiles/job/job.h"

namespace ghostrank {

Workload plan_fsdp(const JobSpec& spec);

}  // namespace ghostrank
