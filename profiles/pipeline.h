// Pipeline schedules: in which order a stage passes its micro-batches forward and backward.
//
//   1f1b, 4 stages, 4 micro-batches (stage 0 above)
//     F0 F1 F2 F3 .. .. .. B0 B1 B2 B3
//        F0 F1 F2 .. .. B0 F3 B1 B2 B3
//           F0 F1 .. B0 F2 B1 F3 B2 B3
//              F0 B0 F1 B1 F2 B2 F3 B3
//
// A stage holds `chunks` parts of the model; a part is known by its place in the model, 0 ..
// parts-1: what leaves one part forward enters the next, what leaves it backward enters the one
// before.
//
//   1f1b          one chunk; part = stage
//   interleaved   chunk c of stage p is part c P + p (Narayanan et al., SC'21)
//   zb-h1         one chunk; the backward in two passes: gradients of the input, which the stage
//                 before waits for, and of the weights, which fill what would be a bubble
//   zbv           likewise with two chunks in a V: part p and, on the way back, part 2P-1-p
//
// The first two orders are derived from Megatron-core's schedules.py, the zero-bubble ones (Qi et
// al., 2024) from torch.distributed.pipelining. Threading: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ghostrank {

enum class Pass : std::uint8_t { forward, backward, input_backward, weight_backward };

struct Slot {
  Pass pass = Pass::forward;
  int micro_batch = 0;
  int chunk = 0;
  bool operator==(const Slot&) const = default;
};

struct Pipeline {
  std::string schedule = "1f1b";
  int stages = 1, chunks = 1, micro_batches = 1;

  int parts() const { return stages * chunks; }
  bool is_v() const { return schedule == "zbv"; }
  int part(int stage, int chunk) const {
    return is_v() && chunk == 1 ? parts() - 1 - stage : chunk * stages + stage;
  }
  int stage_of(int part) const {
    return is_v() && part >= stages ? parts() - 1 - part : part % stages;
  }
};

// Chunks per stage of a schedule when `interleave` is asked for.
int pipeline_chunks(const std::string& schedule, int interleave);

// How much longer than its compute alone a step takes through an idle network, as a share of that
// compute, where all parts take alike and the two passes of a split backward take as long as the
// forward: (P-1)/M for 1f1b, (P-1)/(vM) interleaved, (P-1)/(3M) for zb-h1. Empty: no closed form.
std::optional<double> pipeline_bubble(const Pipeline& pipeline);

std::vector<Slot> pipeline_slots(const Pipeline& pipeline, int stage);

}  // namespace ghostrank
