// Open MPI's schedules, and its choice among them.
#include "collectives/openmpi/openmpi.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"
#include "collectives/generic/trees.h"
#include "collectives/libraries.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kKi = 1 << 10, kMi = 1 << 20;

const Algorithm& row(Func func, std::string_view name) {
  return *find_algorithm("openmpi-4.1", func, name);
}

struct Message {
  GroupRank to;
  Block block;
  bool operator==(const Message&) const = default;
};

std::vector<Message> blocks_sent_by(const Schedule& schedule, GroupRank r) {
  std::vector<Message> sent;
  for (int k = 0; k < schedule.actor(r, 0).steps; ++k) {
    const Step step = schedule.step(r, 0, k);
    for (const GroupRank to : step.send_to) sent.push_back({to, step.send});
  }
  return sent;
}

TEST(OpenMpiRing, SendsItsOwnBlockFirstToRankPlus1AndLongBlocksComeFirst) {
  const auto schedule = row(Func::all_reduce, "ring").make({Func::all_reduce, 4, 10, 4, 0}, {});
  // Blocks of 3, 3, 2, 2 elements.
  const Block b0{0, 3}, b1{3, 3}, b2{6, 2}, b3{8, 2};
  EXPECT_EQ(blocks_sent_by(*schedule, 1),
            (std::vector<Message>{{2, b1}, {2, b0}, {2, b3}, {2, b2}, {2, b1}, {2, b0}}));
}

TEST(OpenMpiRing, TurnsToRecursiveDoublingForFewerElementsThanRanks) {
  const auto schedule = row(Func::all_reduce, "ring").make({Func::all_reduce, 4, 3, 4, 0}, {});
  EXPECT_EQ(blocks_sent_by(*schedule, 0), (std::vector<Message>{{1, {0, 3}}, {2, {0, 3}}}));
}

TEST(OpenMpiRabenseifner, HalvesWithGrowingDistanceAndKeepsTheLeftPartOnTheLowerRank) {
  const auto schedule =
      row(Func::all_reduce, "rabenseifner").make({Func::all_reduce, 4, 10, 4, 0}, {});
  EXPECT_EQ(blocks_sent_by(*schedule, 0),
            (std::vector<Message>{{1, {5, 5}}, {2, {2, 3}}, {2, {0, 2}}, {1, {0, 5}}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 3),
            (std::vector<Message>{{2, {0, 5}}, {1, {5, 2}}, {1, {7, 3}}, {2, {5, 5}}}));
}

TEST(OpenMpiRabenseifner, FoldsByExchangingHalves) {
  const auto schedule =
      row(Func::all_reduce, "rabenseifner").make({Func::all_reduce, 3, 5, 4, 0}, {});
  EXPECT_EQ(blocks_sent_by(*schedule, 1), (std::vector<Message>{{0, {0, 2}}, {0, {2, 3}}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 0),
            (std::vector<Message>{{1, {2, 3}}, {2, {2, 3}}, {2, {0, 2}}, {1, {0, 5}}}));
}

TEST(OpenMpiRabenseifner, IsLinearForFewerElementsThanSurvivors) {
  const auto schedule =
      row(Func::all_reduce, "rabenseifner").make({Func::all_reduce, 5, 3, 4, 0}, {});
  EXPECT_EQ(schedule->step(0, 0, 1).recv_from[0], 4);  // the last rank first
  EXPECT_EQ(blocks_sent_by(*schedule, 3), (std::vector<Message>{{0, {0, 3}}}));
}

TEST(OpenMpiRabenseifner, ReducesUpABinomialTreeToTheRoot) {
  const auto schedule = row(Func::reduce, "rabenseifner").make({Func::reduce, 4, 10, 4, 1}, {});
  EXPECT_EQ(blocks_sent_by(*schedule, 0),
            (std::vector<Message>{{1, {5, 5}}, {2, {2, 3}}, {1, {0, 5}}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 1), (std::vector<Message>{{0, {0, 5}}, {3, {7, 3}}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 2).back(), (Message{0, {2, 3}}));
}

TEST(OpenMpiRabenseifner, HandsSurvivor0sWindowToARootThatWasFolded) {
  // 6 ranks: 0 1 and 2 3 are pairs; 0, 2, 4 and 5 survive.
  const auto schedule = row(Func::reduce, "rabenseifner").make({Func::reduce, 6, 8, 4, 3}, {});
  EXPECT_EQ(blocks_sent_by(*schedule, 0).back(), (Message{3, {0, 2}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 4).back(), (Message{3, {2, 2}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 2).back(), (Message{3, {4, 4}}));
}

TEST(OpenMpiReduce, OverAnInOrderTreeEndsOnTheLastRankWhichTellsTheRoot) {
  const auto schedule = row(Func::reduce, "in-order_binary").make({Func::reduce, 9, 1, 4, 4}, {});
  const GroupRank parents[] = {1, 3, 3, 8, 5, 7, 7, 8, 4};
  for (GroupRank r = 0; r < 9; ++r)
    EXPECT_EQ(blocks_sent_by(*schedule, r), (std::vector<Message>{{parents[r], {0, 1}}})) << r;
  EXPECT_EQ(schedule->step(8, 0, 1).recv_from[0], 7);  // the left child first
}

TEST(OpenMpiReduce, IsLinearFromTheLastRankOn) {
  const auto schedule = row(Func::reduce, "linear").make({Func::reduce, 4, 1, 4, 1}, {});
  for (const auto& [k, from] : {std::pair{1, 3}, {2, 2}, {3, 0}})
    EXPECT_EQ(schedule->step(1, 0, k).recv_from[0], from);
}

TEST(OpenMpiButterfly, SendsBlocksToTheMirroredSurvivor) {
  const auto schedule =
      row(Func::reduce_scatter, "butterfly").make({Func::reduce_scatter, 6, 10, 4, 0}, {});
  // Survivors 1, 3, 4, 5 take blocks 0 1, 2 3, 4, 5.
  EXPECT_EQ(blocks_sent_by(*schedule, 2), (std::vector<Message>{{3, {0, 60}}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 3),
            (std::vector<Message>{{1, {0, 40}}, {5, {50, 10}}, {4, {40, 10}}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 4),
            (std::vector<Message>{{5, {40, 20}}, {1, {0, 20}}, {2, {20, 10}}, {3, {30, 10}}}));
}

TEST(OpenMpiBroadcast, OfASplitTreeExchangesHalvesBetweenItsSides) {
  const auto schedule =
      row(Func::broadcast, "split_binary_tree").make({Func::broadcast, 6, 5, 4, 1}, {});
  const Block left{0, 3}, right{3, 2};
  EXPECT_EQ(blocks_sent_by(*schedule, 1),
            (std::vector<Message>{{2, left}, {3, right}, {0, right}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 2), (std::vector<Message>{{4, left}, {0, left}, {3, left}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 5), (std::vector<Message>{{4, right}}));
  EXPECT_TRUE(blocks_sent_by(*schedule, 0).empty());
}

TEST(OpenMpiBroadcast, ScattersAndGathersByDoublingWithWhatIsLeftPassedOn) {
  const auto schedule =
      row(Func::broadcast, "scatter_allgather").make({Func::broadcast, 5, 9, 4, 0}, {});
  const Block last{8, 1};  // blocks of 2
  EXPECT_EQ(blocks_sent_by(*schedule, 0), (std::vector<Message>{{4, last},
                                                                {2, {4, 4}},
                                                                {1, {2, 2}},
                                                                {1, {0, 2}},
                                                                {2, {0, 4}},
                                                                {4, {0, 8}},
                                                                {2, last},
                                                                {1, last}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 2),
            (std::vector<Message>{{3, {6, 2}}, {3, {4, 2}}, {0, {4, 4}}, {3, last}}));
}

TEST(OpenMpiNeighborExchange, TakesTurnsWithTheNeighboursOfItsPair) {
  const auto schedule = row(Func::all_gather, "neighbor").make({Func::all_gather, 6, 1, 4, 0}, {});
  EXPECT_EQ(blocks_sent_by(*schedule, 0),
            (std::vector<Message>{{1, {0, 1}}, {5, {0, 2}}, {1, {4, 2}}}));
  EXPECT_EQ(blocks_sent_by(*schedule, 3),
            (std::vector<Message>{{2, {3, 1}}, {4, {2, 2}}, {2, {4, 2}}}));
}

TEST(OpenMpiLinear, SendsDownwardsBeforeItReceives) {
  const auto schedule = row(Func::all_to_all, "linear").make({Func::all_to_all, 4, 1, 4, 0}, {});
  for (int k = 0; k < 3; ++k) {
    EXPECT_TRUE(schedule->step(1, 0, k).recv_from.empty());
    EXPECT_EQ(schedule->step(1, 0, k).send_to[0], (1 + 3 - k) % 4);
    EXPECT_EQ(schedule->step(1, 0, k + 3).recv_from[0], (1 + k + 1) % 4);
  }
}

std::vector<int> children(TreeChild child, int n, int v) {
  std::vector<int> all;
  for (int i = 0; child(n, v, i) != kNoRank; ++i) all.push_back(child(n, v, i));
  return all;
}

TEST(Trees, HaveTheShapesOfTheirPictures) {
  EXPECT_EQ(children(nearest_first_child, 10, 0), (std::vector<int>{1, 2, 4, 8}));
  EXPECT_EQ(children(nearest_first_child, 10, 1), (std::vector<int>{3, 5, 9}));
  EXPECT_EQ(children(binary_child, 10, 0), (std::vector<int>{1, 2}));
  EXPECT_EQ(children(binary_child, 10, 2), (std::vector<int>{4, 6}));
  EXPECT_EQ(children(four_nomial_child, 10, 0), (std::vector<int>{4, 8, 1, 2, 3}));
  EXPECT_EQ(children(four_nomial_child, 10, 4), (std::vector<int>{5, 6, 7}));
  EXPECT_EQ(children(four_nomial_child, 10, 8), (std::vector<int>{9}));
}

struct Choice {
  Func func;
  int ranks;
  std::uint64_t bytes;
  const char* algorithm;
};

TEST(OpenMpiChoice, FollowsTheFixedRules) {
  const Choice choices[] = {
      {Func::all_reduce, 2, 7, "ring"},
      {Func::all_reduce, 2, 8, "recursive_doubling"},
      {Func::all_reduce, 3, 64 * kKi, "segmented_ring"},
      {Func::all_reduce, 3, 256 * kKi, "rabenseifner"},
      {Func::all_reduce, 4, 15, "ring"},
      {Func::all_reduce, 8, 8 * kKi - 1, "recursive_doubling"},
      {Func::all_reduce, 16, 63, "segmented_ring"},
      {Func::all_reduce, 63, 128, "rabenseifner"},
      {Func::all_reduce, 64, 256 * kKi - 1, "recursive_doubling"},
      {Func::all_reduce, 128, 128 * kKi - 1, "nonoverlapping"},
      {Func::all_reduce, 511, 4 * kKi, "rabenseifner"},
      {Func::all_reduce, 512, 16 * kKi - 1, "recursive_doubling"},
      {Func::all_reduce, 2048, 4 * kKi - 1, "segmented_ring"},
      {Func::all_reduce, 100'000, 32 * kKi - 1, "recursive_doubling"},
      {Func::all_reduce, 100'000, 1ULL << 40, "rabenseifner"},
      {Func::all_gather, 2, kMi, "two_proc"},
      {Func::all_gather, 31, kMi, "recursive_doubling"},
      {Func::all_gather, 32, kKi, "neighbor"},
      {Func::all_gather, 63, 64 * kKi, "ring"},
      {Func::all_gather, 200, kMi - 1, "neighbor"},
      {Func::all_gather, 300, 127, "bruck"},
      {Func::reduce_scatter, 3, 64 * kKi, "butterfly"},
      {Func::reduce_scatter, 4, 7, "non-overlapping"},
      {Func::reduce_scatter, 8, 256 * kKi - 1, "recursive_halving"},
      {Func::reduce_scatter, 8, 256 * kKi, "ring"},
      {Func::reduce_scatter, 40, 2 * kKi, "butterfly"},
      {Func::broadcast, 3, 0, "pipeline"},
      {Func::broadcast, 3, kKi - 1, "knomial"},
      {Func::broadcast, 5, kMi, "chain"},
      {Func::broadcast, 8, 32 * kKi, "basic_linear"},
      {Func::broadcast, 20, kMi, "scatter_allgather"},
      {Func::broadcast, 40, 2 * kKi - 1, "binomial"},
      {Func::broadcast, 127, 5, "knomial"},
      {Func::broadcast, 500, 16 * kKi, "split_binary_tree"},
      {Func::all_to_all, 2, kMi, "pairwise"},
      {Func::all_to_all, 2, 3, "two_proc"},
      {Func::all_to_all, 7, 8 * kKi - 1, "linear_sync"},
      {Func::all_to_all, 7, 8 * kKi, "linear"},
      {Func::all_to_all, 16, 511, "modified_bruck"},
      {Func::all_to_all, 127, 256 * kKi, "pairwise"},
      {Func::barrier, 3, 0, "recursive_doubling"},
      {Func::barrier, 4, 0, "linear"},
      {Func::barrier, 64, 0, "bruck"},
      {Func::barrier, 256, 0, "tree"},
      {Func::gather, 3, 128 * kKi, "linear_sync"},
      {Func::gather, 8, kMi, "binomial"},
      {Func::scatter, 7, 2 * kKi, "linear"},
      {Func::scatter, 64, 512, "linear_nb"},
      {Func::all_gather_v, 2, 2 * kKi, "two_proc"},
      {Func::all_gather_v, 12, kKi - 1, "default"},
      {Func::all_gather_v, 200, 64 * kKi, "ring"},
      {Func::all_to_all_v, 3, 0, "pairwise"},
      {Func::all_to_all_v, 63, kMi, "linear"},
      {Func::all_to_all_v, 1024, kMi, "linear"},
      {Func::reduce, 3, 7, "rabenseifner"},
      {Func::reduce, 3, 512 * kKi, "chain"},
      {Func::reduce, 7, kMi, "linear"},
      {Func::reduce, 31, 4 * kKi - 1, "binary"},
      {Func::reduce, 31, 4 * kKi, "binomial"},
      {Func::reduce, 511, 8 * kKi, "in-order_binary"},
      {Func::reduce, 3000, 16 * kKi, "binomial"},
      {Func::send_recv, 4, 0, ""},
  };
  for (const Choice& c : choices)
    EXPECT_EQ(openmpi_choice(c.func, c.ranks, c.bytes), c.algorithm)
        << name_of(c.func) << ' ' << c.ranks << ' ' << c.bytes;
}

TEST(OpenMpiFixed, PlaysWhatTheRulesChoose) {
  const Collective c{Func::all_reduce, 6, 3000, 4, 0};
  const auto schedule = row(c.func, "auto").make(c, {});
  const auto chosen = row(c.func, "rabenseifner").make(c, {});
  for (GroupRank r = 0; r < c.size; ++r)
    EXPECT_EQ(blocks_sent_by(*schedule, r), blocks_sent_by(*chosen, r));
}

TEST(OpenMpiFixed, CountsAllBlocksOfAReduceScatterButOneOfAnAllGather) {
  // 8 ranks with 32 KiB each, 256 KiB in all: a ring. 40 ranks with 1 KiB each: neighbour exchange.
  const Collective scatter{Func::reduce_scatter, 8, 8192, 4, 0};
  EXPECT_EQ(row(scatter.func, "fixed").cost(scatter).steps, 7);
  const Collective gather{Func::all_gather, 40, 256, 4, 0};
  EXPECT_EQ(row(gather.func, "fixed").cost(gather).steps, 20);
}

// Group sizes around the rules' limits; counts 2^k - 1, so one lies between any two powers of two.
TEST(OpenMpiFixed, PlaysWhateverTheRulesMayChoose) {
  const int sizes[] = {1,   2,   3,   4,   7,   8,   15,   16,   31,   32,   63,   64,
                       127, 128, 255, 256, 511, 512, 1023, 1024, 2047, 2048, 4095, 4096};
  for (const Algorithm& r : openmpi_rows()) {
    if (r.name != "fixed" || is_ragged(r.func)) continue;
    for (const int size : sizes)
      for (std::uint64_t count = 0; count <= 4 * kMi; count = 2 * count + 1) {
        const Collective c{r.func, size, count, 1, size - 1};
        const auto schedule = r.make(c, {});
        EXPECT_EQ(schedule->played(), openmpi_choice(r.func, size,
                                                     r.func == Func::reduce_scatter
                                                         ? count * static_cast<std::uint64_t>(size)
                                                         : count));
        EXPECT_EQ(schedule->actors(0), 1);
      }
  }
}

TEST(OpenMpi, SendsNothingForNoElements) {
  for (const Algorithm& r : openmpi_rows()) {
    if (r.func == Func::barrier || is_ragged(r.func)) continue;  // their empty messages count
    const CheckReport report = check(*r.make({r.func, 8, 0, 4, 0}, {}));
    EXPECT_TRUE(report.ok) << report.error;
    EXPECT_EQ(report.messages, 0U) << r.name;
  }
}

TEST(OpenMpiBarrier, OfRecursiveDoublingExchangesWithTheRankAPowerOfTwoBelow) {
  const auto schedule =
      row(Func::barrier, "recursive_doubling").make({Func::barrier, 6, 0, 1, 0}, {});
  const CheckReport report = check(*schedule, {.pairs = true});
  ASSERT_TRUE(report.ok) << report.error;
  EXPECT_EQ(report.messages, 12U);
  EXPECT_EQ(schedule->step(4, 0, 0).send_to[0], 0);
  EXPECT_EQ(schedule->step(1, 0, 1).send_to[0], 0);  // after rank 5's message
  EXPECT_EQ(schedule->step(1, 0, 3).send_to[0], 5);
}

TEST(OpenMpiGather, WithASignalSendsAnEmptySecondPart) {
  const auto schedule = row(Func::gather, "linear_sync").make({Func::gather, 3, 10, 4, 1}, {});
  const CheckReport report = check(*schedule, {.pairs = true});
  ASSERT_TRUE(report.ok) << report.error;
  ASSERT_EQ(report.pairs.size(), 4U);
  EXPECT_EQ(report.pairs[0], (PairBytes{0, 1, 2, 40}));
  EXPECT_EQ(report.pairs[1], (PairBytes{1, 0, 1, 0}));
}

TEST(OpenMpiAllGatherV, ByDefaultGathersWhatIsNotEmptyAndBroadcastsAll) {
  const auto counts =
      std::make_shared<const std::vector<std::uint64_t>>(std::vector<std::uint64_t>{5, 0, 7, 1});
  const Collective c{Func::all_gather_v, 4, 0, 4, 0, counts};
  const CheckReport report = check(*row(c.func, "fixed").make(c, {}), {.pairs = true});
  ASSERT_TRUE(report.ok) << report.error;
  EXPECT_EQ(report.bytes, 4U * (7 + 1) + 3U * 52);
  EXPECT_EQ(report.messages, 2U + 3U);
}

TEST(OpenMpi, DoesNotCutItsMessages) {
  const Communicator cut{{}, 4, 16, {2}};
  const Collective c{Func::all_reduce, 4, 100, 4, 0};
  EXPECT_EQ(check(*row(c.func, "ring").make(c, cut)).messages, 24U);
}

}  // namespace
}  // namespace ghostrank
