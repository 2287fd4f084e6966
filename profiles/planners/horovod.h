// Horovod as Programs: a background thread looks every cycle for gradients that are ready on all
// ranks, fuses them in the order in which they became ready, and all-reduces one fused buffer after
// the other.
//
//   clock   |----|----|----|----|----|
//   compute | fwd .. fwd | bwd n | bwd n-1 | .. | bwd 0 |       | optimizer |
//   cycles       |bits|bits|bits|bits|bits|
//   comm                             [ fused ]    [ fused ][ rest ]
//
// In every cycle ranks first agree on what is ready, even if it is nothing: an all-reduce of one
// bit per cached tensor and of the status bits, on the controller's communicator. Cycles are
// counted from the start of the forward; what a rank finds in one follows from the layers' computed
// times, so cycles and buffers are the same in every step. A tensor joins a buffer while the sum,
// each tensor rounded up to 16 bytes, fits; one that is larger goes alone.
//
// The rule is that of horovod/common (controller.cc, tensor fusion on GPUs). Not played: cycles
// after the one that finds the last gradients, as many as the network leaves time for; and the
// negotiation of the first step, before anything is cached. A model of more tensors than the cache
// holds, which would negotiate in every step, is refused. Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/model/model.h"
#include "profiles/planners/shared/data_parallel.h"

namespace ghostrank {

struct HorovodCycle {                  // one that finds gradients
  std::uint64_t number = 0;            // the first comes one cycle's time after the step's start
  std::size_t layer = 0;               // its backward is the last to have ended before
  std::vector<std::uint64_t> buffers;  // elements of each all-reduce, padding included
};

std::vector<HorovodCycle> horovod_cycles(const Model& model, std::span<const LayerTime> times,
                                         std::uint32_t element_bytes, std::uint64_t threshold,
                                         Picoseconds cycle);

Workload plan_horovod(const JobSpec& spec);

}  // namespace ghostrank
