// DeepSpeed's ZeRO as Programs.
//
// clang-format off
//   zero1, zero2   Buckets collect gradients in backward order. Each bucket is all-reduced, and
//                  every rank keeps its slice (DeepSpeed's default,
//                  use_multi_rank_bucket_allreduce), or each rank's slice is reduced to that rank.
//                  After the step one all-gather brings the parameters. Without overlap_comm,
//                  these stages' default, the backward waits for every bucket; with it only for
//                  the bucket before.
//   zero3          Parameters are sharded tensor by tensor. A layer's parameters are gathered
//                  before its forward and its backward; then the next layers' parameters are
//                  gathered until the prefetch bucket is full or too many are live. A layer that
//                  is used again within the reuse distance stays; small tensors always do.
//                  A head that shares the embedding's table uses it, too.
//                  Gradients are reduce-scattered bucket by bucket during the backward. After
//                  the step small tensors, which stay but are updated in shards, are gathered.
// clang-format on
//
// Gradients are reduced in precision.gradients (DeepSpeed's communication_data_type), which is the
// parameters' type unless the job gives it. The rules follow deepspeed/runtime/zero
// (stage_1_and_2.py, stage3.py, partitioned_param_coordinator.py); `parallel.bucket_size` is
// reduce_bucket_size. Parameters are gathered by layer here but by module in DeepSpeed, which
// therefore makes more and smaller calls. Modules of multi-token prediction do not gather a table
// that they share. A step has one micro-batch, so stages 1 and 2 send the same. Units: elements.
// Threading: pure.
#pragma once

#include <cstdint>

#include "profiles/job/job.h"

namespace ghostrank {

Workload plan_zero(const JobSpec& spec);

// The most elements of sharded parameters that a rank of zero3 has gathered at a time.
std::uint64_t most_gathered(const JobSpec& spec);

}  // namespace ghostrank
