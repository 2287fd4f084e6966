// Names, buffer sizes and slices.
#include "collectives/schedule.h"

#include <set>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

TEST(Names, AreThoseOfTheCommandLine) {
  EXPECT_EQ(name_of(Func::all_reduce), "allreduce");
  EXPECT_EQ(name_of(Func::barrier), "barrier");
  std::set<std::string_view> names;
  for (int f = 0; f < kFuncs; ++f) names.insert(name_of(static_cast<Func>(f)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kFuncs));
}

TEST(Buffers, HoldABlockPerRankWhereTheFunctionHasBlocks) {
  EXPECT_EQ(work_elements({Func::all_reduce, 4, 10, 4, 0}), 10U);
  EXPECT_EQ(work_elements({Func::reduce_scatter, 4, 10, 4, 0}), 40U);
  EXPECT_EQ(work_elements({Func::all_gather, 4, 10, 4, 0}), 40U);
  EXPECT_EQ(work_elements({Func::barrier, 4, 10, 4, 0}), 0U);
  EXPECT_EQ(input_elements({Func::all_to_all, 4, 10, 4, 0}), 40U);
  EXPECT_EQ(input_elements({Func::all_gather, 4, 10, 4, 0}), 0U);
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
