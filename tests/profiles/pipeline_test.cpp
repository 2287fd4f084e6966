#include "profiles/pipeline.h"

#include <map>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

// "F0 F1 B0 …"; chunks other than 0 follow a dot.
std::string text_of(const Pipeline& pipeline, int stage) {
  std::string out;
  for (const Slot& slot : pipeline_slots(pipeline, stage)) {
    if (!out.empty()) out += " ";
    out += (slot.pass == Pass::forward ? "F" : "B") + std::to_string(slot.micro_batch);
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

class EverySchedule : public testing::TestWithParam<Pipeline> {};

TEST_P(EverySchedule, PassesEveryMicroBatchOnceForwardThenOnceBackward) {
  const Pipeline& pipeline = GetParam();
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    std::map<std::pair<int, int>, int> state;  // by (micro-batch, chunk): passes so far
    for (const Slot& slot : pipeline_slots(pipeline, stage)) {
      int& passes = state[{slot.micro_batch, slot.chunk}];
      EXPECT_EQ(passes, slot.pass == Pass::forward ? 0 : 1);
      ++passes;
    }
    EXPECT_EQ(state.size(), static_cast<std::size_t>(pipeline.micro_batches * pipeline.chunks));
    for (const auto& [key, passes] : state) EXPECT_EQ(passes, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EverySchedule,
                         testing::Values(Pipeline{"1f1b", 1, 1, 3}, Pipeline{"1f1b", 4, 1, 1},
                                         Pipeline{"1f1b", 8, 1, 64},
                                         Pipeline{"interleaved", 2, 2, 2},
                                         Pipeline{"interleaved", 4, 3, 8},
                                         Pipeline{"interleaved", 8, 2, 64}));

}  // namespace
}  // namespace ghostrank
