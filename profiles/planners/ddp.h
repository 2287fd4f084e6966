// PyTorch's DistributedDataParallel as Programs: every rank computes the whole model on its own
// samples and all-reduces gradients in buckets, overlapped with the backward where possible.
//
// clang-format off
//   iteration 0   one bucket holds all gradients and is reduced after the backward, because the
//                 order in which gradients become ready is not known yet
//   iteration 1   begins with the rebuild: rank 0 broadcasts the buckets' assignment (indices of
//                 tensors and their count, then bucket sizes), and every rank waits for it
//   afterwards    buckets in gradient-ready order, launched strictly in index order
//
//   compute | fwd .. fwd | bwd n | bwd n-1 | .. | bwd 0 |            | optimizer |
//   comm                 |       [ bucket 0 ][ bucket 1 ] .. [ last ]|
// clang-format on
//
// With find_unused_parameters the buckets stay as they were made, so all iterations are alike, and
// behind the last bucket follows an all-reduce of an int32 for each parameter: whether it was used.
//
// Over gloo two all-reduces run at a time, because PyTorch gives a gloo process group two threads
// that serve one queue.
//
// The rules follow torch/csrc/distributed/c10d/reducer.cpp, with reverse registration order in
// place of the order in which gradients become ready. All gradients of a layer become ready when
// its backward ends. Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/model/model.h"

namespace ghostrank {

struct Bucket {
  std::uint64_t numel = 0;
  std::uint64_t bytes = 0;
  std::size_t tensors = 0;
  std::size_t last_layer = 0;  // the bucket is complete when this layer's backward ends
};

// Assigns tensors in reverse registration order. A bucket closes as soon as it holds `first_bytes`
// (bucket 0) or `cap_bytes` (the others), so its last tensor may exceed the limit. With
// find_unused_parameters they are assigned in registration order, and the list is then reversed.
std::vector<Bucket> ddp_buckets(const Model& model, std::uint32_t element_bytes,
                                std::uint64_t first_bytes, std::uint64_t cap_bytes);

// True if a captured model's recorded steps are played one after the other, false if their medians
// are: by other frameworks, and where a controller of ratios repeats one step.
bool plays_recorded_steps(const JobSpec& spec);

Workload plan_ddp(const JobSpec& spec);

}  // namespace ghostrank
