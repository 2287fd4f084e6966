// Pipeline schedules: the order in which a stage runs its micro-batches forward and backward.
//
//   1f1b, 4 stages, 4 micro-batches (stage 0 above)
//     F0 F1 F2 F3 .. .. .. B0 B1 B2 B3
//        F0 F1 F2 .. .. B0 F3 B1 B2 B3
//           F0 F1 .. B0 F2 B1 F3 B2 B3
//              F0 B0 F1 B1 F2 B2 F3 B3
//
// A stage holds `chunks` parts of the model. Parts are numbered in the order of the model, 0 ..
// parts-1: the output of a part's forward enters the next part, the output of its backward enters
// the part before.
//
//   1f1b          one chunk; part = stage
//   interleaved   chunk c of stage p is part c P + p (Narayanan et al., SC'21); micro-batches pass
//                 a chunk in rounds of P, or, if P does not divide their number, of the size that
//                 torch.distributed.pipelining chooses
//   zb-h1         one chunk; the backward has two passes: input gradients, which the stage before
//                 awaits, and weight gradients, which fill bubbles
//   zbv           likewise with two chunks in a V: part p and, on the way back, part 2P-1-p
//   dualpipev     the same V; forwards of one chunk alternate with backwards of the other
//   dualpipe      P parts, each held twice: half of the micro-batches run through the stages in
//                 each direction. Stages s and P-1-s hold the same two parts, of which chunk 0 is
//                 the earlier one, so they reduce their gradients together
//
// 1f1b and interleaved are derived from Megatron-core's schedules.py; zb-h1, zbv (Qi et al., 2024)
// and dualpipev from torch.distributed.pipelining; dualpipe (DeepSeek-AI, 2024) from its
// dualpipe.py. A forward and a backward that may overlap there are joined slots: the planner
// decides how they share the GPU. Threading: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profiles/units.h"

namespace ghostrank {

enum class Pass : std::uint8_t { forward, backward, input_backward, weight_backward };

struct Slot {
  Pass pass = Pass::forward;
  int micro_batch = 0;
  int chunk = 0;
  // With the next slot: both receive before the first, and send after the last.
  bool joined = false;
  // dualpipe: the receive is launched `early` slots before its pass, the send `late` slots after.
  int early = 0, late = 0;
  bool operator==(const Slot&) const = default;
};

struct Pipeline {
  std::string schedule = "1f1b";
  int stages = 1, chunks = 1, micro_batches = 1;
  bool alike = true;  // all parts have equally many layers
  int round = 0;      // interleaved: micro-batches per round; 0: one per stage

  bool is_v() const { return schedule == "zbv" || schedule == "dualpipev"; }
  bool is_bidirectional() const { return schedule == "dualpipe"; }
  int parts() const { return is_bidirectional() ? stages : stages * chunks; }
  int part(int stage, int chunk) const;
  int stage_of(int part) const;  // with dualpipe, the first of the two that hold it
  // The stage that holds the part after a chunk's part (step 1), or before it (step -1), on the
  // way of its micro-batches; empty at the ends of the model.
  std::optional<int> neighbour(int stage, int chunk, int step) const;
  // True if one stage has both the first part and the last.
  bool ends_meet() const { return part(0, chunks - 1) == parts() - 1; }
};

// Chunks per stage of a schedule; only interleaved uses `interleave`.
int pipeline_chunks(const std::string& schedule, int interleave);

// interleaved: forwards of a stage before the first of those that alternate with backwards; all, if
// none do.
int interleaved_warmup(const Pipeline& pipeline, int stage);

// The pipeline bubble: idle time of a step over an ideal network as a share of its compute, if all
// parts take equally long (`alike`: as far as their layers say): (P-1)/M for 1f1b, (P-1)/(vM)
// interleaved. Empty: it depends on how long each pass takes, as where weight gradients fill waits.
std::optional<double> pipeline_bubble(const Pipeline& pipeline);

std::vector<Slot> pipeline_slots(const Pipeline& pipeline, int stage);

// Every schedule begins, repeats a period of so many micro-batches, and ends.
int pipeline_period(const Pipeline& pipeline);
// Micro-batches per stage with which every schedule reaches its steady state.
inline constexpr int kRounds = 4;
// The shortest pipeline of at least `least` micro-batches that is `pipeline` less whole periods;
// `pipeline` itself if it is not longer.
Pipeline shortened(const Pipeline& pipeline, int least);

// When the last stage ends if transfers between parts take no time: compute and bubble of uneven
// parts. `time` is of a part's pass. 0 for dualpipe. Of a long pipeline only the first rounds are
// played; each further period takes as long as the last one played.
Picoseconds pipeline_time(const Pipeline& pipeline,
                          const std::function<Picoseconds(int part, Pass pass)>& time);

}  // namespace ghostrank
