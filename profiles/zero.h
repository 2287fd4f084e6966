// DeepSpeed's ZeRO as Programs.
//
//   zero1, zero2   gradients are collected in buckets in backward order and all-reduced, each rank
//                  keeping its slice (DeepSpeed's default, use_multi_rank_bucket_allreduce); after
//                  the step the parameters are gathered once. Without overlap_comm, DeepSpeed's
//                  default for these stages, the backward waits for every bucket.
//   zero3          parameters are sharded tensor by tensor; a layer's are gathered before its
//                  forward and its backward, with the next layers' as far as the prefetch bucket
//                  reaches; small tensors stay; gradients are reduced and scattered bucket by
//                  bucket beside the backward
//
// Gradients travel in the type of the parameters. The rules are those of deepspeed/runtime/zero
// with its default settings; `parallel.bucket_size` is reduce_bucket_size. One micro-batch per
// step, so stages 1 and 2 send the same. Units: elements. Threading: pure.
#pragma once

#include "profiles/job.h"

namespace ghostrank {

Workload plan_zero(const JobSpec& spec);

}  // namespace ghostrank
