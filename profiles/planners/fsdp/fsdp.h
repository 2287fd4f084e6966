// PyTorch's FSDP2 (fully_shard) as Programs: every layer of the model, the embeddings and the head
// are units whose parameters are sharded over all ranks, or over groups of them.
//
//   compute |     | F0 | F1 | F2 |     | B2 | B1 | B0 | optimizer |
//   comm    | AG0 | AG1 | AG2 |   | AG2 | AG1 | RS2, AG0 | RS1 | RS0 |
//
// A unit's parameters are gathered before its forward, given up after it, gathered again before its
// backward; its gradients are reduced and scattered after. While a unit is waited for the next
// gathers are launched, `parallel.prefetch` of them. `reshard_after_forward` says which units are
// given up: by default all with framework fsdp, all but the last with torchtitan, none of a
// pipeline, as TorchTitan's own default does. The rules are those of
// torch/distributed/fsdp/_fully_shard; one communicator of shards, so gathers and scatters share a
// stream.
//
// Hybrid sharding (HSDP, `dp_replicate` above 1): neighbouring ranks share a whole model; ranks
// with the same shards all-reduce them after each scatter, on a stream of their own.
//
// TorchTitan's tensor, context and expert parallelism and its activation checkpointing:
// fsdp/layers.h, fsdp/mesh.h. Norms are whole on every
// tensor-parallel rank; their gradients are summed once, where PyTorch sums them layer by layer,
// and three times in fp32 where nothing is sharded.
// Routed experts under expert parallelism are gathered and scattered over the ranks of their own
// mesh.
//
// TorchTitan's pipelines: stages and schedules of torch.distributed.pipelining, layers spread by
// TorchTitan's rule (layer_split.h). Parameters stay after a backward until the step's end;
// gradients are reduced behind a chunk's last backward. A stage of several chunks gathers those
// that come next, three at most, a chunk at a time. Activations and gradients travel by two
// communicators, where PyTorch has one.
//
// Shards are of a tensor's first dimension, padded to the largest of them. Of several micro-batches
// without a pipeline each reduces its gradients. The norm of the gradients is one call over all
// tensors. Threading: pure.
#pragma once

#include "profiles/job/job.h"

namespace ghostrank {

Workload plan_fsdp(const JobSpec& spec);

}  // namespace ghostrank
