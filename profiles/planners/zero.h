// DeepSpeed's ZeRO as Programs.
//
//   zero1, zero2   gradients are collected in buckets in backward order and all-reduced, each rank
//                  keeping its slice (DeepSpeed's default, use_multi_rank_bucket_allreduce), or the
//                  slice of every rank is reduced to it; after the step the parameters are gathered
//                  once. Without overlap_comm, DeepSpeed's default for these stages, the backward
//                  waits for every bucket; with it for the bucket before.
//   zero3          parameters are sharded tensor by tensor; a layer's are gathered before its
//                  forward and its backward, and behind that as many of the next layers' as fill
//                  the prefetch bucket, unless too many are live; a layer that is used again within
//                  the reuse distance stays; small tensors always do; gradients are reduced and
//                  scattered bucket by bucket beside the backward
//
// Gradients travel in the type of the parameters. The rules are those of deepspeed/runtime/zero
// (stage_1_and_2.py, partitioned_param_coordinator.py); `parallel.bucket_size` is
// reduce_bucket_size. Layers stand where DeepSpeed has modules, so it makes more and smaller calls.
// One micro-batch per step, so stages 1 and 2 send the same. Units: elements. Threading: pure.
#pragma once

#include "profiles/job/job.h"

namespace ghostrank {

Workload plan_zero(const JobSpec& spec);

}  // namespace ghostrank
