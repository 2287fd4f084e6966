// The device mesh of PyTorch's sharded data parallelism: ranks as replicas of groups that share a
// model, and inside them tensor-parallel neighbours.
//
//   rank = t + tp (s + shard r)       t: tensor parallel, s: shard, r: replica
//
// Errors: usage, with the nearest values that fit. Threading: plain values.
#pragma once

#include "profiles/job.h"
#include "profiles/model.h"

namespace ghostrank {

struct FsdpMesh {
  int tp = 1, shard = 1, replicate = 1;
  // Kinds of groups; one that has no use here is not made. Without replicas the data group is that
  // of the shards.
  std::uint16_t data_group = 0, shard_group = 0, replica_group = 0, tensor_group = 0;
};

// Checks that job, model and cluster fit, and fills in all of the workload but its programs.
FsdpMesh fsdp_mesh(const JobSpec& spec, Workload& workload);

// Whether tensor parallelism leaves the tensor whole: norms.
bool is_replicated(const JobSpec& spec, const Tensor& tensor);

}  // namespace ghostrank
