#include "profiles/planners/pipeline/pipeline.h"

#include <map>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

// "F0 F1 B0 …"; chunks other than 0 follow a dot.
std::string text_of(const Pipeline& pipeline, int stage) {
  std::string out;
  for (const Slot& slot : pipeline_slots(pipeline, stage)) {
    if (!out.empty()) out += " ";
    out += "FBIW"[static_cast<std::size_t>(slot.pass)] + std::to_string(slot.micro_batch);
    if (slot.chunk > 0) out += "." + std::to_string(slot.chunk);
  }
  return out;
}

TEST(OneForwardOneBackward, WarmsUpAsFarAsTheStageIsFromTheEnd) {
  const Pipeline four{"1f1b", 4, 1, 5};
  EXPECT_EQ(text_of(four, 0), "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
  EXPECT_EQ(text_of(four, 2), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
  EXPECT_EQ(text_of(four, 3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
  EXPECT_EQ(text_of({"1f1b", 4, 1, 2}, 0), "F0 F1 B0 B1");
}

TEST(Interleaved, PassesBlocksOfMicroBatchesChunkAfterChunk) {
  const Pipeline two{"interleaved", 2, 2, 4};
  EXPECT_EQ(text_of(two, 0), "F0 F1 F0.1 F1.1 F2 B0.1 F3 B1.1 F2.1 B0 F3.1 B1 B2.1 B3.1 B2 B3");
  EXPECT_EQ(text_of(two, 1), "F0 F1 F0.1 B0.1 F1.1 B1.1 F2 B0 F3 B1 F2.1 B2.1 F3.1 B3.1 B2 B3");
}

TEST(ZeroBubbleH1, FillsTheWaitsWithWeightGradients) {
  const Pipeline three{"zb-h1", 3, 1, 4};
  EXPECT_EQ(text_of(three, 0), "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3");
  EXPECT_EQ(text_of(three, 1), "F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3");
  EXPECT_EQ(text_of(three, 2), "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
}

TEST(ZeroBubbleV, GoesDownAndUpTheStages) {
  const Pipeline two{"zbv", 2, 2, 3};
  EXPECT_EQ(text_of(two, 0),
            "F0 F1 F2 F0.1 I0.1 W0.1 F1.1 I1.1 W1.1 I0 W0 F2.1 I2.1 W2.1 I1 W1 I2 W2");
  EXPECT_EQ(two.part(0, 1), 3);
  EXPECT_EQ(two.neighbour(1, 0, 1), 1);
  EXPECT_EQ(two.neighbour(1, 1, 1), 0);
  EXPECT_EQ(two.neighbour(0, 1, 1), std::nullopt);
}

TEST(DualPipe, RunsHalfOfTheMicroBatchesFromEitherEnd) {
  const Pipeline four{"dualpipe", 4, 2, 8};  // micro-batches 4 to 7 begin at stage 3
  EXPECT_EQ(text_of(four, 0),
            "F0 F1 F2 F4.1 I4.1 W4.1 F5.1 F3 B5.1 F6.1 B0 B6.1 F7.1 B1 B7.1 I2 W2 I3 W3");
  EXPECT_EQ(text_of(four, 1),
            "F0 F4.1 F1 F5.1 F2 B4.1 F6.1 B0 F3 B5.1 F7.1 B1 B6.1 B2 I7.1 I3 W7.1 W3");
  EXPECT_EQ(text_of(four, 3).substr(0, 21), "F4 F5 F6 F0.1 I0.1 W0");
  EXPECT_EQ(four.parts(), 4);
  EXPECT_EQ(four.part(0, 1), 3);
  EXPECT_EQ(four.part(3, 0), 0);
  EXPECT_EQ(four.part(2, 1), 2);
  EXPECT_EQ(four.neighbour(1, 0, 1), 2);  // from part 1 to part 2, on stage 2
  EXPECT_EQ(four.neighbour(2, 0, 1), 1);
  EXPECT_EQ(four.neighbour(2, 1, -1), 1);
  EXPECT_EQ(four.neighbour(3, 1, 1), std::nullopt);
}

TEST(DualPipeV, AlternatesForwardsOfOneChunkWithBackwardsOfTheOther) {
  const Pipeline two{"dualpipev", 2, 2, 4};
  EXPECT_EQ(text_of(two, 0),
            "F0 F1 F2 F0.1 I0.1 W0.1 F1.1 F3 B1.1 F2.1 B0 B2.1 F3.1 B1 B3.1 I2 W2 I3 W3");
  EXPECT_EQ(text_of(two, 1),
            "F0 F0.1 F1 F1.1 F2 B0.1 F2.1 B0 F3 B1.1 F3.1 B1 B2.1 B2 I3.1 I3 W3.1 W3");
}

// torch.distributed.pipelining makes equal rounds when the stages do not divide the micro-batches.
TEST(Interleaved, PassesChunksInRoundsOfTheLengthGiven) {
  Pipeline three{"interleaved", 2, 2, 3};
  three.round = 3;
  EXPECT_EQ(text_of(three, 0), "F0 F1 F2 F0.1 F1.1 F2.1 B0.1 B1.1 B2.1 B0 B1 B2");
  EXPECT_EQ(text_of(three, 1), "F0 F1 F2 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 B0 B1 B2");
}

class EverySchedule : public testing::TestWithParam<Pipeline> {};

TEST_P(EverySchedule, PassesEveryMicroBatchOnceForwardThenOnceBackward) {
  const Pipeline& pipeline = GetParam();
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    std::map<std::pair<int, int>, std::string> passes;  // by (micro-batch, chunk)
    for (const Slot& slot : pipeline_slots(pipeline, stage))
      passes[{slot.micro_batch, slot.chunk}] += "FBIW"[static_cast<std::size_t>(slot.pass)];
    const int chunks = pipeline.parts() / pipeline.stages;
    EXPECT_EQ(passes.size(), static_cast<std::size_t>(pipeline.micro_batches * chunks));
    const bool in_two = pipeline.schedule.starts_with("zb"),
               either = pipeline.schedule.starts_with("dual");
    for (const auto& [key, order] : passes)
      EXPECT_TRUE((!in_two && order == "FB") || ((in_two || either) && order == "FIW")) << order;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, EverySchedule,
    testing::Values(Pipeline{"1f1b", 1, 1, 3}, Pipeline{"1f1b", 4, 1, 1},
                    Pipeline{"1f1b", 8, 1, 64}, Pipeline{"interleaved", 2, 2, 2},
                    Pipeline{"interleaved", 4, 3, 8}, Pipeline{"interleaved", 8, 2, 64},
                    Pipeline{"zb-h1", 2, 1, 1}, Pipeline{"zb-h1", 4, 1, 9},
                    Pipeline{"zb-h1", 8, 1, 64}, Pipeline{"zbv", 2, 2, 1}, Pipeline{"zbv", 4, 2, 7},
                    Pipeline{"zbv", 8, 2, 64}, Pipeline{"dualpipe", 2, 2, 4},
                    Pipeline{"dualpipe", 8, 2, 20}, Pipeline{"dualpipev", 1, 2, 2},
                    Pipeline{"dualpipev", 4, 2, 8}, Pipeline{"dualpipev", 8, 2, 21}));

}  // namespace
}  // namespace ghostrank
