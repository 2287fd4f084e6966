// What a stage of a pipeline does in a step: its passes, what it sends and receives between them,
// and where its compute waits for that.
//
//   1f1b          forwards and backwards in turn: what a pass made and what the next one needs are
//                 one batch, which the stage waits for; else it waits for a send, then for a
//                 receive (Megatron-core, pipeline_parallel/schedules.py)
//   interleaved   transfers are launched one by one (overlap_p2p_comm). In the warm-up and at the
//                 end the stage waits for what it has launched. In between it has launched the
//                 receive of the next forward with the send of the last one, and likewise for
//                 backwards, and waits where it needs the data; it waits for a forward's send at
//                 once (core 0.18; up to 0.17 where the next one leaves), for a backward's where
//                 the next one leaves (schedules.py)
//   dualpipe      before every pass a batch of all sends and receives that have gathered, which the
//                 stage waits for; a few are launched earlier or later (dualpipe.py, commit and
//                 wait)
//   others        sends are on their own, and the stage waits for a receive where it needs the data
//                 (torch.distributed.pipelining, whose runtime waits for sends at the end)
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/planners/pipeline/pipeline.h"

namespace ghostrank {

struct StageAction {
  enum class Kind : std::uint8_t {
    pass,      // computes `slot`, and the next one if they are joined
    exchange,  // launches `sends` and `receives` together
    await,     // waits for `sends` and `receives`
  };
  // What the stage waits for where an exchange is launched.
  enum class Waits : std::uint8_t { nothing, receives, all };

  Kind kind = Kind::pass;
  std::size_t slot = 0;
  // By slot: what its pass has made, what it needs. A slot may have no such transfer.
  std::vector<std::size_t> sends{}, receives{};
  Waits waits = Waits::nothing;
  bool operator==(const StageAction&) const = default;
};

// `slots` are the stage's (pipeline_slots).
std::vector<StageAction> stage_actions(const Pipeline& pipeline, int stage,
                                       std::span<const Slot> slots);

}  // namespace ghostrank
