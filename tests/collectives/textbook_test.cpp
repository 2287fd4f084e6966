// What all textbook schedules share: splitting over channels, orders of ranks, cutting into slices.
#include "collectives/generic/textbook.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

TEST(ChannelView, PiecesAreNearEqualAndTileTheShare) {
  for (const int size : {1, 3, 4, 7})
    for (const std::uint64_t count : {0U, 1U, 3U, 6U, 7U, 100U}) {
      ChannelView shape;
      shape.size = size;
      shape.share = {50, count};
      shape.piece_elements = count / size;
      shape.long_pieces = count % size;
      std::uint64_t next = 50;
      for (int j = 0; j < size; ++j) {
        EXPECT_EQ(shape.piece(j).offset, next);
        EXPECT_LE(shape.piece(0).count - shape.piece(j).count, 1U);
        next += shape.piece(j).count;
      }
      EXPECT_EQ(next, 50 + count);
    }
}

std::vector<GroupRank> ranks_of(const Order& order, int size) {
  std::vector<GroupRank> ranks;
  for (int p = 0; p < size; ++p) {
    ranks.push_back(order.rank_at(p));
    EXPECT_EQ(order.position_of(ranks.back()), p);
  }
  return ranks;
}

TEST(Order, RotatesRanksInsideNodes) {
  const Nodes nodes({0, 0, 0, 0, 1, 1, 1, 1});
  EXPECT_EQ(ranks_of(Order(nodes, 0), 8), (std::vector<GroupRank>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(ranks_of(Order(nodes, 1), 8), (std::vector<GroupRank>{1, 2, 3, 0, 5, 6, 7, 4}));
  EXPECT_EQ(ranks_of(Order(nodes, 6), 8), (std::vector<GroupRank>{2, 3, 0, 1, 6, 7, 4, 5}));
}

TEST(Order, RotatesUnequalNodesEachByItsOwnSize) {
  const Nodes nodes({7, 7, 7, 2, 2, 5});
  EXPECT_EQ(ranks_of(Order(nodes, 2), 6), (std::vector<GroupRank>{2, 0, 1, 3, 4, 5}));
  EXPECT_EQ(ranks_of(Order(nodes, 1), 6), (std::vector<GroupRank>{1, 2, 0, 4, 3, 5}));
}

TEST(Order, LeavesScatteredNodesAlone) {
  EXPECT_EQ(ranks_of(Order(Nodes({0, 1, 0, 1}), 1), 4), (std::vector<GroupRank>{0, 1, 2, 3}));
}

TEST(Textbook, DropsChannelsThatWouldBeEmptyButKeepsOne) {
  const Communicator eight{{}, 8, 0, {}};
  EXPECT_EQ(Textbook(kRingAllReduce, {Func::all_reduce, 4, 100, 4, 0}, eight).actors(0), 8);
  EXPECT_EQ(Textbook(kRingAllReduce, {Func::all_reduce, 4, 3, 4, 0}, eight).actors(0), 3);
  EXPECT_EQ(Textbook(kRingAllReduce, {Func::all_reduce, 4, 0, 4, 0}, eight).actors(0), 1);
}

TEST(Textbook, NeverCutsAMessageLargerThanASlice) {
  const Collective c{Func::all_reduce, 3, 100, 4, 0};
  for (const std::uint64_t slice_bytes : {4, 7, 40, 132, 136, 1000})
    for (const std::uint32_t credits : {0U, 3U}) {
      const Textbook schedule(kRingAllReduce, c, {{}, 1, slice_bytes, {credits}});
      for (int k = 0; k < schedule.actor(1, 0).steps; ++k) {
        const Step step = schedule.step(1, 0, k);
        std::uint64_t covered = 0;
        for (std::uint32_t s = 0; s < step.slices; ++s) {
          EXPECT_LE(slice_of(step.send, step, s).count * 4,
                    std::max<std::uint64_t>(4, slice_bytes));
          covered += slice_of(step.send, step, s).count;
        }
        EXPECT_EQ(covered, step.send.count);
      }
    }
}

TEST(Textbook, KeepsTheWindowFullButNoFuller) {
  // Pieces of 8 slices, 3 credits: 3 slices leave at once, then one per slice received.
  const Textbook schedule(kRingAllReduce, {Func::all_reduce, 2, 16, 4, 0}, {{}, 1, 4, {3}});
  EXPECT_EQ(schedule.actor(0, 0).steps, 5);
  const Step first = schedule.step(0, 0, 0), second = schedule.step(0, 0, 1);
  EXPECT_TRUE(first.recv_from.empty());
  EXPECT_EQ(first.slices, 3U);
  EXPECT_EQ(first.send, (Block{8, 3}));
  EXPECT_EQ(second.slices, 5U);
  EXPECT_EQ(second.send, (Block{11, 5}));
  EXPECT_EQ(second.recv, (Block{0, 5}));
  EXPECT_EQ(second.on_recv, Combine::reduce);
}

// A rank in the middle that took most of the buffer before it sent would make a chain of n ranks
// take n - 1 times as long.
TEST(Textbook, PassesSlicesOfAChainOnAsTheyComeWithFewCreditsToo) {
  for (const Form* form : {&kChainBroadcast, &kChainReduce}) {
    const Func func = form == &kChainReduce ? Func::reduce : Func::broadcast;
    const Textbook schedule(*form, {func, 3, 16, 4, 0}, {{}, 1, 4, {3}});
    EXPECT_EQ(schedule.actor(1, 0).steps, 3);
    const Step middle = schedule.step(1, 0, 1);
    EXPECT_EQ(middle.slices, 16U);
    EXPECT_EQ(middle.recv_from.size(), 1);
    EXPECT_EQ(middle.send_to.size(), 1);
    EXPECT_EQ(middle.recv, middle.send);
  }
}

TEST(Textbook, RefusesWhatMakesNoSense) {
  const Communicator plain;
  EXPECT_THROW(Textbook(kRingAllReduce, {Func::all_reduce, 0, 1, 4, 0}, plain),
               std::invalid_argument);
  EXPECT_THROW(Textbook(kBinomialBroadcast, {Func::broadcast, 2, 1, 4, 2}, plain),
               std::invalid_argument);
  EXPECT_THROW(Textbook(kRingAllReduce, {Func::all_reduce, 3, 1, 4, 0}, {{0, 0}, 1, 0, {}}),
               std::invalid_argument);
}

}  // namespace
}  // namespace ghostrank
