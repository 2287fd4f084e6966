// PyTorch's DistributedDataParallel as Programs: every rank computes the whole model on its own
// samples and all-reduces gradients in buckets, as far as possible while the backward runs.
//
//   iteration 0    one bucket holds everything, reduced after the whole backward: the order in
//   which
//                  gradients become ready is not known yet
//   iteration 1    starts with the rebuild: rank 0 broadcasts which tensors go where (the indices
//                  and their count, then the bucket sizes), and everyone waits for it
//   afterwards     buckets in gradient-ready order, launched strictly in index order
//
//   compute | fwd .. fwd | bwd n | bwd n-1 | .. | bwd 0 |            | optimizer |
//   comm                 |       [ bucket 0 ][ bucket 1 ] .. [ last ]|
//
// Over gloo, two all-reduces run at a time: PyTorch gives a gloo process group two threads, which
// serve a queue.
//
// The rule is that of torch/csrc/distributed/c10d/reducer.cpp; reverse registration order stands in
// for the order in which gradients become ready. The gradients of a layer are ready together, when
// the layer's backward has ended. Threading: pure functions.
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
  std::size_t last_layer = 0;  // the bucket is full when this layer's backward has ended
};

// Tensors in reverse registration order; a bucket closes as soon as it holds `first_bytes` (the
// first) or `cap_bytes` (the others), so it may exceed its limit by its last tensor.
std::vector<Bucket> ddp_buckets(const Model& model, std::uint32_t element_bytes,
                                std::uint64_t first_bytes, std::uint64_t cap_bytes);

Workload plan_ddp(const JobSpec& spec);

}  // namespace ghostrank
