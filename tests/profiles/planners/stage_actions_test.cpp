#include "profiles/planners/pipeline/stage_actions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "profiles/planners/pipeline/streams.h"

namespace ghostrank {
namespace {

// What a slot's pass sends or receives, activations (forward) or gradients, and the other stage.
struct Transfer {
  bool forward = false;
  int other = 0;
};
std::optional<Transfer> transfer(const Pipeline& pipeline, int stage, const Slot& slot,
                                 bool receives) {
  if (slot.pass == Pass::weight_backward) return std::nullopt;
  const bool forward = slot.pass == Pass::forward;
  const auto other = pipeline.neighbour(stage, slot.chunk, forward == receives ? -1 : 1);
  if (!other || *other == stage) return std::nullopt;
  return Transfer{forward, *other};
}

// Micro-batches of a chunk are numbered from 0: "F0.1" is the first one that chunk 1 passes.
std::string text_of(const Slot& slot, const std::map<int, int>& first) {
  if (slot.pass == Pass::weight_backward) return "W";
  return (slot.pass == Pass::forward ? "F" : "B") +
         std::to_string(slot.micro_batch - first.at(slot.chunk)) + "." + std::to_string(slot.chunk);
}

// Lists passes, and the sends (s) and receives (r) launched together: in square brackets if the
// stage waits for them, in angle brackets if it continues. Round brackets: a later wait.
std::string actions_of(const Pipeline& pipeline, int stage) {
  const std::vector<Slot> slots = pipeline_slots(pipeline, stage);
  std::map<int, int> first;
  for (const Slot& slot : slots) {
    const auto at = first.try_emplace(slot.chunk, slot.micro_batch).first;
    at->second = std::min(at->second, slot.micro_batch);
  }
  std::ostringstream out;
  for (const StageAction& action : stage_actions(pipeline, stage, slots)) {
    if (action.kind == StageAction::Kind::pass) {
      out << ' ' << text_of(slots[action.slot], first);
      if (slots[action.slot].joined) out << '+' << text_of(slots[action.slot + 1], first);
      continue;
    }
    std::set<std::string> names;
    for (const std::size_t slot : action.sends)
      if (transfer(pipeline, stage, slots[slot], false))
        names.insert("s" + text_of(slots[slot], first));
    for (const std::size_t slot : action.receives)
      if (transfer(pipeline, stage, slots[slot], true))
        names.insert("r" + text_of(slots[slot], first));
    if (names.empty()) continue;
    const char* brackets = action.kind == StageAction::Kind::await       ? "()"
                           : action.waits == StageAction::Waits::nothing ? "<>"
                                                                         : "[]";
    out << ' ' << brackets[0];
    for (const std::string& name : names) out << (name == *names.begin() ? "" : " ") << name;
    out << brackets[1];
  }
  return out.str().substr(1);
}

// Megatron-core, forward_backward_pipelining_with_interleaving: two stages of two chunks, four
// micro-batches. The first stage alternates from its fifth forward on.
TEST(StageActions, OfInterleavedStagesLaunchReceivesBeforeTheyNeedThem) {
  const Pipeline two{"interleaved", 2, 2, 4};
  EXPECT_EQ(actions_of(two, 0),
            "F0.0 [sF0.0] F1.0 [rF0.1 sF1.0] F0.1 [rF1.1 sF0.1] F1.1 [sF1.1] <rB0.1> "
            "F2.0 <sF2.0> (sF2.0) (rB0.1) B0.1 <rB1.1 sB0.1> "
            "F3.0 <rF2.1 sF3.0> (sF3.0) (rB1.1) B1.1 <rB0.0 sB1.1> (sB0.1) "
            "(rF2.1) F2.1 <rF3.1 sF2.1> (sF2.1) (rB0.0) B0.0 <rB1.0> (sB1.1) "
            "(rF3.1) F3.1 <sF3.1> (sF3.1) (rB1.0) B1.0 <rB2.1> "
            "(rB2.1) B2.1 [rB3.1 sB2.1] B3.1 [rB2.0 sB3.1] B2.0 [rB3.0] B3.0");
  // Two micro-batches all fit in the warm-up.
  EXPECT_EQ(actions_of({"interleaved", 2, 2, 2}, 0),
            "F0.0 [sF0.0] F1.0 [rF0.1 sF1.0] F0.1 [rF1.1 sF0.1] F1.1 [sF1.1] [rB0.1] "
            "B0.1 [rB1.1 sB0.1] B1.1 [rB0.0 sB1.1] B0.0 [rB1.0] B1.0");
}

// The expected texts are the order of the released DualPipe, with names in place of its passes and
// transfers.
TEST(StageActions, OfDualPipeAreBatchesBeforeItsPasses) {
  const Pipeline four{"dualpipe", 4, 2, 8};
  EXPECT_EQ(actions_of(four, 0),
            "F0.0 [sF0.0] F1.0 [sF1.0] F2.0 [rF0.1] F0.1 [sF2.0] B0.1 [rF1.1 sB0.1] W F1.1 "
            "F3.0+B1.1 [rB0.0 rF2.1 sB1.1 sF3.0] F2.1+B0.0 B2.1 [rB1.0 rF3.1 sB2.1] F3.1+B1.0 "
            "B3.1 [rB2.0 sB3.1] B2.0 W [rB3.0] B3.0 W");
  EXPECT_EQ(actions_of(four, 1),
            "[rF0.0] F0.0 [rF0.1 rF1.0 sF0.0] F0.1 [sF0.1] F1.0 [rF1.1 rF2.0 sF1.0] F1.1 F2.0 "
            "[rB0.1 sF1.1] B0.1 [rB0.0 rF2.1 sB0.1 sF2.0] F2.1+B0.0 [rB1.1 rF3.0 sB0.0 sF2.1] "
            "F3.0+B1.1 [rB1.0 rF3.1 sB1.1 sF3.0] F3.1+B1.0 [rB2.1 sB1.0 sF3.1] B2.1 [rB2.0 sB2.1] "
            "B2.0 [rB3.1 sB2.0] B3.1 [rB3.0 sB3.1] B3.0 [sB3.0] W W");
  EXPECT_EQ(actions_of({"dualpipe", 2, 2, 4}, 0),
            "F0.0 [rF0.1 sF0.0] F0.1 F1.0 B0.1 [rB0.0 rF1.1 sB0.1 sF1.0] F1.1+B0.0 B1.1 "
            "[rB1.0 sB1.1] B1.0 W");
}

TEST(StageActions, OfOneForwardOneBackwardAreBatchesWhereTheyAlternate) {
  const Pipeline two{"1f1b", 2, 1, 3};
  EXPECT_EQ(actions_of(two, 0),
            "F0.0 [sF0.0] F1.0 [rB0.0 sF1.0] B0.0 F2.0 [rB1.0 sF2.0] B1.0 [rB2.0] B2.0");
  EXPECT_EQ(actions_of(two, 1),
            "[rF0.0] F0.0 B0.0 [rF1.0 sB0.0] F1.0 B1.0 [rF2.0 sB1.0] F2.0 B2.0 [sB2.0]");
}

class EveryStage : public testing::TestWithParam<Pipeline> {};

// Every pass has its input. At the end of the step the stage has sent everything, and has awaited
// its sends if its schedule awaits sends.
TEST_P(EveryStage, LaunchesEveryTransferOnceAndHasItsInput) {
  const Pipeline& pipeline = GetParam();
  const bool waits = pipeline.schedule == "1f1b" || pipeline.schedule == "interleaved" ||
                     pipeline.schedule == "dualpipe";
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    const std::vector<Slot> slots = pipeline_slots(pipeline, stage);
    std::set<std::size_t> sent, received, came, left, passed;
    const auto await = [&](const StageAction& action, bool sends) {
      for (const std::size_t slot : action.receives) EXPECT_TRUE(received.contains(slot)) << slot;
      came.insert(action.receives.begin(), action.receives.end());
      if (!sends) return;
      for (const std::size_t slot : action.sends) EXPECT_TRUE(sent.contains(slot)) << slot;
      left.insert(action.sends.begin(), action.sends.end());
    };
    for (const StageAction& action : stage_actions(pipeline, stage, slots)) {
      if (action.kind == StageAction::Kind::pass) {
        for (std::size_t i = action.slot; i <= action.slot + (slots[action.slot].joined ? 1 : 0);
             ++i) {
          EXPECT_TRUE(came.contains(i)) << stage << ' ' << i;
          passed.insert(i);
        }
      } else if (action.kind == StageAction::Kind::await) {
        await(action, true);
      } else {
        for (const std::size_t slot : action.receives) EXPECT_TRUE(received.insert(slot).second);
        for (const std::size_t slot : action.sends) {
          EXPECT_TRUE(passed.contains(slot));
          EXPECT_TRUE(sent.insert(slot).second);
        }
        if (action.waits != StageAction::Waits::nothing)
          await(action, action.waits == StageAction::Waits::all);
      }
    }
    EXPECT_EQ(sent.size(), slots.size());
    EXPECT_EQ(received.size(), slots.size());
    EXPECT_EQ(passed.size(), slots.size());
    EXPECT_EQ(left.size(), waits ? slots.size() : 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, EveryStage,
    testing::Values(Pipeline{"1f1b", 4, 1, 2}, Pipeline{"1f1b", 4, 1, 9},
                    Pipeline{"interleaved", 2, 2, 2}, Pipeline{"interleaved", 3, 4, 6},
                    Pipeline{"interleaved", 8, 2, 64}, Pipeline{"zb-h1", 4, 1, 9},
                    Pipeline{"zbv", 4, 2, 7}, Pipeline{"dualpipe", 2, 2, 4},
                    Pipeline{"dualpipe", 8, 2, 20}, Pipeline{"dualpipev", 4, 2, 8}));

// Ops of one stream of NCCL run one after the other, so two ranks must give the communicator that
// they share the same transfers in the same order.
TEST(StageActions, OfInterleavedStagesKeepTheOrderOfACommunicatorAtBothEnds) {
  for (const int stages : {2, 3, 4, 8})
    for (const int chunks : {2, 3, 5})
      for (const int rounds : {1, 2, 3}) {
        const Pipeline pipeline{"interleaved", stages, chunks, rounds * stages};
        // By communicator and stage: transfers, as (from, forward, micro-batch, later part).
        std::map<std::pair<int, int>, std::map<int, std::vector<std::tuple<int, bool, int, int>>>>
            order;
        for (int stage = 0; stage < stages; ++stage) {
          const std::vector<Slot> slots = pipeline_slots(pipeline, stage);
          const auto add = [&](std::size_t slot, bool receives) {
            const auto t = transfer(pipeline, stage, slots[slot], receives);
            if (!t) return;
            const int from = receives ? t->other : stage, to = receives ? stage : t->other;
            const std::pair key = stages == 2 ? std::pair{from, to}
                                              : std::pair{std::min(from, to), std::max(from, to)};
            const int part = pipeline.part(stage, slots[slot].chunk);
            order[key][stage].emplace_back(from, t->forward, slots[slot].micro_batch,
                                           t->forward == receives ? part : part + 1);
          };
          for (const StageAction& action : stage_actions(pipeline, stage, slots)) {
            if (action.kind != StageAction::Kind::exchange) continue;
            for (const std::size_t slot : action.sends) add(slot, false);
            for (const std::size_t slot : action.receives) add(slot, true);
          }
        }
        ASSERT_EQ(order.size(), static_cast<std::size_t>(stages));
        for (const auto& [key, ends] : order) {
          ASSERT_EQ(ends.size(), 2u);
          EXPECT_EQ(ends.begin()->second, ends.rbegin()->second)
              << stages << " stages, " << chunks << " chunks, " << rounds << ": " << key.first
              << " and " << key.second;
        }
      }
}

TEST(PipelineStreams, AreThoseOfTheCommunicators) {
  const auto names = [](const Pipeline& pipeline, int stage, PipelineStreams::Layout layout) {
    std::vector<std::string> out{"compute"};
    const PipelineStreams streams(pipeline, stage, layout, out);
    EXPECT_EQ(streams.streams().size() + 1, out.size());
    return out;
  };
  using Names = std::vector<std::string>;
  using Layout = PipelineStreams::Layout;
  EXPECT_EQ(names({"1f1b", 4, 1, 4}, 1, Layout::sends),
            (Names{"compute", "activations to stage 2", "gradients to stage 0"}));
  EXPECT_EQ(names({"dualpipe", 4, 2, 8}, 0, Layout::transfers).size(), 5u);
  EXPECT_EQ(names({"interleaved", 4, 2, 4}, 0, Layout::pairs),
            (Names{"compute", "stage 1", "stage 3"}));
  EXPECT_EQ(names({"interleaved", 2, 2, 4}, 0, Layout::pairs),
            (Names{"compute", "to stage 1", "from stage 1"}));
}

}  // namespace
}  // namespace ghostrank
