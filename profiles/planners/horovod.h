// Horovod as Programs: in every cycle a background thread looks for gradients that are ready on all
// ranks, fuses them in the order in which they became ready, and all-reduces one fused buffer after
// the other.
//
//   clock   |----|----|----|----|----|
//   compute | fwd .. fwd | bwd n | bwd n-1 | .. | bwd 0 |       | optimizer |
//   cycles       |bits|bits|bits|bits|bits|
//   comm                             [ fused ]    [ fused ][ rest ]
//
// In every cycle the ranks first agree on the ready tensors, even if there are none: an all-reduce
// of one bit per cached tensor and of the status bits, on the controller's communicator. Cycles
// count from the start of the forward. The layers' computed times decide what a cycle finds, so
// cycles and buffers are the same in every step. A cycle does not begin before the ranks have
// agreed in the last one: cycles come every `cycle_ms`, or as often as the latencies of the
// controller's ring let them. Where agreeing takes longer all the same (NICs are busy, another
// algorithm has many steps), cycles go on side by side, and none holds up later ones. A tensor
// joins a buffer while the sum fits, each tensor rounded up to 16 bytes; a larger one goes alone.
//
// The rules follow horovod/common (controller.cc, tensor fusion on GPUs). Not played: the cycles
// after the one that finds the last gradients, whose number the network decides; and the
// negotiation of the first step, before responses are cached. A model with more tensors than the
// cache holds would negotiate in every step, and is refused. Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/model/model.h"
#include "profiles/planners/shared/data_parallel.h"

namespace ghostrank {

struct HorovodCycle {                  // a cycle that finds gradients
  std::uint64_t number = 0;            // cycle 1 comes one cycle time after the step's start
  std::size_t layer = 0;               // the last layer whose backward has ended before it
  std::vector<std::uint64_t> buffers;  // elements of each all-reduce, padding included
};

// The cycles of a step that find gradients. `threshold`: bytes of the fusion buffer; `cycle`: time
// from one cycle to the next.
std::vector<HorovodCycle> horovod_cycles(const Model& model, std::span<const LayerTime> times,
                                         std::uint32_t element_bytes, std::uint64_t threshold,
                                         Picoseconds cycle);

Workload plan_horovod(const JobSpec& spec);

}  // namespace ghostrank
