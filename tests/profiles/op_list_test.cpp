// A list of ops returns the ops that were put into it, and stores equal ones once.
#include <gtest/gtest.h>

#include "profiles/workload/op.h"

namespace ghostrank {
namespace {

Op compute(Picoseconds duration, std::uint32_t label) {
  Op op;
  op.duration = duration;
  op.label = label;
  return op;
}

TEST(OpList, IsTheListThatWasWritten) {
  std::vector<Op> written;
  OpList list;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    Op op = compute(i % 7, i % 1000);
    op.peer = -static_cast<std::int32_t>(i % 3);
    op.event = i % 11;
    written.push_back(op);
    list.push_back(op);
    if (i == 2500) list.shrink_to_fit();  // further ops may follow
  }
  ASSERT_EQ(list.size(), written.size());
  std::size_t i = 0;
  for (const Op& op : list) {
    EXPECT_EQ(op, written[i]);
    EXPECT_EQ(list[i], written[i]);
    ++i;
  }
  EXPECT_EQ(i, written.size());
  EXPECT_EQ(list.front(), written.front());
  EXPECT_EQ(list.back(), written.back());
}

TEST(OpList, TellsOpsApartByEveryMember) {
  const Op plain;
  std::vector<Op> others(9);
  others[0].kind = Op::Kind::wait;
  others[1].func = Func::barrier;
  others[2].dtype = DataType::uint8;
  others[3].group = 1;
  others[4].label = 1;
  others[5].event = 1;
  others[6].peer = 1;
  others[7].counts = 1;
  others[8].count = 1;
  OpList list{plain};
  for (const Op& op : others) list.push_back(op);
  for (std::size_t i = 0; i < others.size(); ++i) EXPECT_EQ(list[i + 1], others[i]) << i;
  EXPECT_NE(compute(1, 0), compute(2, 0));
}

TEST(OpList, OccupiesLittleForWhatRepeats) {
  OpList list;
  for (int i = 0; i < 100'000; ++i) list.push_back(compute(i % 10 + 1, 0));
  list.shrink_to_fit();
  EXPECT_EQ(list.occupied_bytes(), 100'000 * 4 + 10 * sizeof(Op));
}

TEST(OpList, OfOneOpMayBeLong) {
  const OpList list(1000, compute(5, 2));
  EXPECT_EQ(list.size(), 1000u);
  EXPECT_EQ(list[999], compute(5, 2));
  EXPECT_TRUE(OpList(0, compute(5, 2)).empty());
}

}  // namespace
}  // namespace ghostrank
