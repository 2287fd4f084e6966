// The device mesh of PyTorch's sharded data parallelism: pipeline stages of replicas of groups that
// share a model, and inside them context- and tensor-parallel neighbours. A rank's shard of the
// parameters is one of its context-parallel neighbours', too. Routed experts see the ranks of a
// replica by a mesh of their own, in which expert parallelism takes the place of tp and of a part
// of the shards.
//
//   rank = t + tp (c + cp (s + shard / cp (r + replicate p)))   t: tp, c: cp, s: shard, r: replica,
//   rank = e + ep (x + experts_shard (r + ...))                 p: stage, e: ep, x: expert's shard
//
// Errors: usage, with the nearest values that fit. Threading: plain values.
#pragma once

#include "profiles/job/job.h"
#include "profiles/model/model.h"
#include "profiles/planners/shared/pipeline.h"

namespace ghostrank {

struct FsdpMesh {
  int tp = 1, cp = 1, replicate = 1, ep = 1;
  int shard = 1;          // ranks that share the parameters: cp of them with the same samples
  int experts_shard = 1;  // ranks that share the routed experts' parameters
  Pipeline pipeline;
  // Kinds of groups; one that has no use here is not made. Without replicas the data group is that
  // of the shards.
  std::uint16_t data_group = 0, shard_group = 0, replica_group = 0, tensor_group = 0,
                context_group = 0, expert_group = 0, experts_shard_group = 0, forward_group = 0,
                backward_group = 0;
};

// Checks that job, model and cluster fit, and fills in all of the workload but its programs.
FsdpMesh fsdp_mesh(const JobSpec& spec, Workload& workload);

// Elements that one of `ways` ranks holds of a tensor: PyTorch shards the first dimension and pads
// every shard to the largest. Tensor parallelism has split it before, columns of the second product
// of each half of a layer, rows elsewhere.
std::uint64_t shard_elements(const JobSpec& spec, const ParameterTensor& tensor,
                             std::uint64_t ways);

// Whether tensor parallelism leaves the tensor whole: norms and routers.
bool is_replicated(const JobSpec& spec, const ParameterTensor& tensor);

}  // namespace ghostrank
