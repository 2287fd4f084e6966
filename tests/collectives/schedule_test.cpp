// Names, buffer sizes and slices.
#include "collectives/schedule.h"

#include <memory>
#include <set>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "collectives/layout.h"

namespace ghostrank {
namespace {

Counts counts_of(std::vector<std::uint64_t> counts) {
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(counts));
}

TEST(Names, AreThoseOfTheCommandLine) {
  EXPECT_EQ(name_of(Func::all_reduce), "allreduce");
  EXPECT_EQ(name_of(Func::barrier), "barrier");
  std::set<std::string_view> names;
  for (int f = 0; f < kFuncs; ++f) names.insert(name_of(static_cast<Func>(f)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kFuncs));
}

TEST(Buffers, HoldABlockPerRankWhereTheFunctionHasBlocks) {
  EXPECT_EQ(work_elements({Func::all_reduce, 4, 10, 4, 0}, 1), 10U);
  EXPECT_EQ(work_elements({Func::reduce_scatter, 4, 10, 4, 0}, 1), 40U);
  EXPECT_EQ(work_elements({Func::all_gather, 4, 10, 4, 0}, 1), 40U);
  EXPECT_EQ(work_elements({Func::barrier, 4, 10, 4, 0}, 1), 0U);
  EXPECT_EQ(input_elements({Func::all_to_all, 4, 10, 4, 0}, 1), 40U);
  EXPECT_EQ(input_elements({Func::all_gather, 4, 10, 4, 0}, 1), 0U);
}

TEST(Buffers, OfAnAllToAllVHoldWhatEveryPairSaysAndDifferFromRankToRank) {
  const Collective c{Func::all_to_all_v, 2, 0, 4, 0, counts_of({1, 2, 0, 5})};
  EXPECT_EQ(input_elements(c, 0), 3U);
  EXPECT_EQ(input_elements(c, 1), 5U);
  EXPECT_EQ(work_elements(c, 0), 1U);
  EXPECT_EQ(work_elements(c, 1), 7U);
  EXPECT_EQ(call_elements(c), 4U);
  const Layout layout(c);
  EXPECT_EQ(layout.input(0, 1), (Block{1, 2, Buffer::input}));
  EXPECT_EQ(layout.work(1, 1), (Block{2, 5, Buffer::work}));
  EXPECT_EQ(layout.block_at(1, 1), 0);
  EXPECT_EQ(layout.block_at(1, 2), 1);
}

TEST(Buffers, OfAnAllGatherVHoldEverybodysBlock) {
  const Collective c{Func::all_gather_v, 3, 0, 4, 0, counts_of({5, 0, 7})};
  EXPECT_EQ(work_elements(c, 2), 12U);
  EXPECT_EQ(input_elements(c, 2), 0U);
  EXPECT_EQ(Layout(c).work(0, 2), (Block{5, 7, Buffer::work}));
  EXPECT_EQ(Layout(c).block_at(0, 5), 2);
}

TEST(Counts, OfAnotherGroupAreRefused) {
  for (const char* library : {"generic", "gloo", "openmpi-4.1", "nccl-2.28", "nccl-2.30"}) {
    int rows = 0;
    for (const Algorithm& row : registry()) {
      if (row.library != library) continue;
      ++rows;
      const Collective c{row.func, 4, 10, 4, 0, counts_of({1, 2, 3})};
      std::string refusal;
      try {
        row.make(c, {});
      } catch (const std::invalid_argument& error) {
        refusal = error.what();
      }
      EXPECT_NE(refusal.find(" counts for 4 ranks, here are 3"), std::string::npos)
          << row.library << ' ' << row.name << ": " << refusal;
    }
    EXPECT_GT(rows, 0) << library;
  }
}

TEST(Slices, TileTheirBlockAndMayBeEmpty) {
  Step step;
  step.slices = 4;
  step.slice_elements = 3;
  const Block block{100, 7, Buffer::input};
  EXPECT_EQ(slice_of(block, step, 0), (Block{100, 3, Buffer::input}));
  EXPECT_EQ(slice_of(block, step, 1), (Block{103, 3, Buffer::input}));
  EXPECT_EQ(slice_of(block, step, 2), (Block{106, 1, Buffer::input}));
  EXPECT_EQ(slice_of(block, step, 3).count, 0U);
}

TEST(Slices, AreTheWholeBlockWithoutASliceLength) {
  EXPECT_EQ(slice_of({5, 9}, Step{}, 0), (Block{5, 9}));
  Step several;
  several.slices = 2;
  EXPECT_EQ(slice_of({5, 9}, several, 1).count, 0U);
}

}  // namespace
}  // namespace ghostrank
