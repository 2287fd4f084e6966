// A list of ops returns the ops that were put into it, stores equal ones once, and repeats its
// body.
#include <algorithm>
#include <stdexcept>
#include <vector>

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
  std::vector<Op> others(17);
  others[0].kind = Op::Kind::wait;
  others[1].func = Func::barrier;
  others[2].dtype = DataType::uint8;
  others[3].group = 1;
  others[4].label = 1;
  others[5].event = 1;
  others[6].peer = 1;
  others[7].counts = 1;
  others[8].count = 1;
  others[9].previous = true;
  others[10].tensor = 1;
  others[11].reduction = Reduction::avg;
  others[12].floats = true;
  others[13].within = Op::Within::pair;
  others[14].launch_index = 1;
  others[15].launch = 1;
  others[16].duration = 1;
  OpList list{plain};
  for (const Op& op : others) list.push_back(op);
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(list[i + 1], others[i]) << i;
    EXPECT_NE(list[i + 1], plain) << i;
  }
  EXPECT_EQ(list.distinct().size(), others.size() + 1);
}

TEST(OpList, OccupiesLittleForWhatRepeats) {
  OpList list;
  for (int i = 0; i < 100'000; ++i) list.push_back(compute(i % 10 + 1, 0));
  list.shrink_to_fit();
  EXPECT_EQ(list.occupied_bytes(), 100'000 * 4 + 10 * sizeof(Op));
}

// A list, and the op and the repetition that it must return for each position.
struct Repeated {
  OpList list;
  std::vector<Op> ops;
  std::vector<std::size_t> repetitions;
};

Repeated repeated(std::size_t before, std::size_t body, std::size_t times, std::size_t after) {
  Repeated out;
  const auto op = [](std::size_t part, std::size_t i) {
    return compute(static_cast<Picoseconds>(part), static_cast<std::uint32_t>(i % 3));
  };
  const auto play = [&](std::size_t part, std::size_t size, std::size_t repetition) {
    for (std::size_t i = 0; i < size; ++i) {
      if (repetition == 0) out.list.push_back(op(part, i));
      out.ops.push_back(op(part, i));
      out.repetitions.push_back(repetition);
    }
  };
  play(1, before, 0);
  for (std::size_t k = 0; k < times; ++k) play(2, body, k);
  out.list.repeat(before, times);
  play(1, after, 0);
  return out;
}

TEST(OpList, PlaysItsBodyAsOftenAsItSays) {
  for (const std::size_t before : {0, 2})
    for (const std::size_t body : {1, 3, 5})
      for (const std::size_t times : {1, 2, 7})
        for (const std::size_t after : {0, 4}) {
          const Repeated made = repeated(before, body, times, after);
          ASSERT_EQ(made.list.size(), made.ops.size());
          EXPECT_TRUE(std::equal(made.list.begin(), made.list.end(), made.ops.begin()));
          EXPECT_EQ(made.list.back(), made.ops.back());
          for (std::size_t i = 0; i < made.ops.size(); ++i)
            EXPECT_EQ(made.list.repetition(i), made.repetitions[i]) << i;
          const std::vector<std::uint64_t> counts = made.list.times();
          ASSERT_EQ(counts.size(), made.list.distinct().size());
          for (std::size_t i = 0; i < counts.size(); ++i)
            EXPECT_EQ(counts[i],
                      std::count(made.ops.begin(), made.ops.end(), made.list.distinct()[i]));
        }
}

TEST(OpList, IsRewrittenWithItsBody) {
  const Repeated made = repeated(2, 3, 5, 1);
  const OpList twice = made.list.rewritten([](const Op& op, OpList& out) {
    if (op.label != 1) out.push_back(op);  // left out
    out.push_back(compute(9, op.label));
  });
  std::vector<Op> expected;
  for (const Op& op : made.ops) {
    if (op.label != 1) expected.push_back(op);
    expected.push_back(compute(9, op.label));
  }
  ASSERT_EQ(twice.size(), expected.size());
  EXPECT_TRUE(std::equal(twice.begin(), twice.end(), expected.begin()));
  EXPECT_EQ(twice.body().times, 5u);
  EXPECT_EQ(made.list.repeated(2).size(), made.ops.size() - 3 * 3);
  OpList longest = made.list.repeated(1'000'000), listed = made.list;
  longest.shrink_to_fit();
  listed.shrink_to_fit();
  EXPECT_EQ(longest.occupied_bytes(), listed.occupied_bytes());
  EXPECT_THROW(repeated(0, 0, 2, 1), std::logic_error);  // nothing to repeat
}

TEST(OpList, OfOneOpMayBeLong) {
  const OpList list(1000, compute(5, 2));
  EXPECT_EQ(list.size(), 1000u);
  EXPECT_EQ(list[999], compute(5, 2));
  EXPECT_TRUE(OpList(0, compute(5, 2)).empty());
}

}  // namespace
}  // namespace ghostrank
