// The device mesh of PyTorch's sharded data parallelism. A pipeline stage has replicas of its part
// of the model; the ranks of a replica shard it, and among them are context- and tensor-parallel
// neighbours. Context-parallel neighbours shard the parameters too. The routed experts have a mesh
// of their own over a replica's ranks, in which expert parallelism takes the place of tp and of a
// part of the shards.
//
//   rank = t + tp (c + cp (s + shard / cp (r + replicate p)))   t: tp, c: cp, s: shard, r: replica,
//   rank = e + ep (x + experts_shard (r + ...))                 p: stage, e: ep, x: expert's shard
//
// Errors: Error(usage), with the nearest values that fit. Threading: plain values.
#pragma once

#include <cstddef>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/model/model.h"
#include "profiles/planners/pipeline/pipeline.h"

namespace ghostrank {

struct FsdpMesh {
  int tp = 1, cp = 1, replicate = 1, ep = 1;
  int shard = 1;          // ranks that shard the parameters; cp of them have the same samples
  int experts_shard = 1;  // ranks that shard the routed experts' parameters
  Pipeline pipeline;
  // Kinds of groups; unused ones are not made. Without replicas the shard group is the data group.
  std::uint16_t data_group = 0, shard_group = 0, replica_group = 0, tensor_group = 0,
                context_group = 0, expert_group = 0, experts_shard_group = 0, forward_group = 0,
                backward_group = 0;
};

// Checks that job, model and cluster fit, and fills in all of the workload but its programs. Throws
// Error(usage).
FsdpMesh fsdp_mesh(const JobSpec& spec, Workload& workload);

// The mesh's pipeline alone. Throws Error(usage).
Pipeline fsdp_pipeline(const JobSpec& spec);

// The model's layers of a stage's chunks. Layer 0 is the embedding, the last one is the head.
std::vector<std::vector<std::size_t>> fsdp_chunks(const JobSpec& spec, const Pipeline& pipeline,
                                                  int stage);

// Elements that one of `shards` ranks holds of a tensor. PyTorch shards the first dimension and
// pads every shard to the largest. Tensor parallelism has split the tensor before: by columns for
// the second product of each half of a layer, by rows elsewhere.
std::uint64_t shard_elements(const JobSpec& spec, const ParameterTensor& tensor,
                             std::uint64_t shards);

// True if tensor parallelism leaves the tensor whole: norms and routers.
bool is_replicated(const JobSpec& spec, const ParameterTensor& tensor);

}  // namespace ghostrank
