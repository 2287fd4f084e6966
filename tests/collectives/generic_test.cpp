// Properties of single textbook algorithms besides a right result: the pairs that communicate, and
// their bytes.
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"
#include "collectives/common/powers.h"
#include "collectives/schedule.h"
#include "tests/collectives/nodes.h"

namespace ghostrank {
namespace {

using testing::nodes_of;

CheckReport proved(const Collective& c, const char* name, const Communicator& comm = {}) {
  const CheckReport report =
      check(*find_algorithm("generic", c.func, name)->make(c, comm), {.pairs = true});
  EXPECT_TRUE(report.ok) << report.error;
  return report;
}

TEST(DoubleTree, GivesNoRankChildrenInBothTrees) {
  for (int size = 2; size <= 64; ++size) {
    const auto schedule = find_algorithm("generic", Func::all_reduce, "double_tree")
                              ->make({Func::all_reduce, size, 1000, 4, 0}, {});
    int leaf_twice = 0;
    for (GroupRank r = 0; r < size; ++r) {
      int inner = 0;
      for (const int up : {0, 2}) inner += schedule->step(r, up, 0).recv_from.empty() ? 0 : 1;
      EXPECT_LE(inner, 1) << "rank " << r << " of " << size;
      leaf_twice += inner == 0 ? 1 : 0;
    }
    EXPECT_EQ(leaf_twice, size % 2) << size;
  }
}

TEST(DoubleTree, TakesLogarithmicallyManySteps) {
  EXPECT_EQ(proved({Func::all_reduce, 2, 100, 4, 0}, "double_tree").rounds, 2);
  EXPECT_LE(proved({Func::all_reduce, 64, 100, 4, 0}, "double_tree").rounds, 4 * 6);
}

TEST(TwoLevel, CrossesNodesWithOneChunkPerRankInFewSteps) {
  // 4 nodes of 8: of each rank's eighth of 25,600 bytes, 2 * 3/4 leave the node, to the same local
  // rank of the next node.
  const CheckReport report =
      proved({Func::all_reduce, 32, 6400, 4, 0}, "two_level", {nodes_of(32, 8), 1, 0, {}});
  EXPECT_EQ(report.rounds, 2 * 7 + 2 * 3);
  std::uint64_t across = 0;
  for (const PairBytes& pair : report.pairs) {
    if (pair.source / 8 == pair.destination / 8) continue;
    EXPECT_EQ(pair.destination, (pair.source + 8) % 32);
    EXPECT_EQ(pair.bytes, 2U * 3 * 800);
    across += pair.bytes;
  }
  EXPECT_EQ(across, 32U * 2 * 3 * 800);
}

// The table in docs/algorithms.md, for N nodes of L ranks.
TEST(TwoLevel, TakesTheStepsBytesAndMessagesOfItsFormulas) {
  for (const int locals : {1, 2, 3, 5, 8})
    for (const int nodes : {1, 2, 3, 4, 7}) {
      const int n = locals * nodes, around = locals - 1 + nodes - 1;
      const int deep = ceil_log2(locals) + ceil_log2(nodes);
      const auto all = static_cast<std::uint64_t>(n), others = all - 1;
      const auto sent = all * static_cast<std::uint64_t>(around);
      const auto expect = [&](Func func, int steps, std::uint64_t blocks, std::uint64_t messages) {
        const CheckReport report =
            proved({func, n, 100, 4, n / 3}, "two_level", {nodes_of(n, locals), 1, 0, {}});
        EXPECT_EQ(report.rounds, steps) << name_of(func) << ' ' << locals << ' ' << nodes;
        EXPECT_EQ(report.bytes, blocks * 400) << name_of(func) << ' ' << locals << ' ' << nodes;
        EXPECT_EQ(report.messages, messages) << name_of(func) << ' ' << locals << ' ' << nodes;
      };
      expect(Func::all_reduce, 2 * around, 2 * others, 2 * sent);
      expect(Func::reduce_scatter, around, all * others, sent);
      expect(Func::all_gather, around, all * others, sent);
      expect(Func::broadcast, deep, others, others);
      expect(Func::reduce, deep, others, others);
    }
}

// A Cost knows no nodes.
TEST(TwoLevel, HasNoClosedFormOfTheGroupsSizeAlone) {
  for (const Algorithm& row : registry())
    if (row.name == "two_level" || row.name == "nvlstree") {
      EXPECT_FALSE(row.cost) << row.library;
    }
}

TEST(TwoLevel, IsARingWhereNodesDifferInSize) {
  const Collective c{Func::all_reduce, 5, 100, 4, 0};
  EXPECT_EQ(proved(c, "two_level", {{0, 0, 0, 1, 1}, 1, 0, {}}).pairs, proved(c, "ring").pairs);
}

TEST(Bruck, TalksToLogarithmicallyManyRanks) {
  for (const Func func : {Func::all_gather, Func::all_to_all}) {
    std::map<GroupRank, std::set<int>> distances;
    for (const PairBytes& pair : proved({func, 13, 10, 4, 0}, "bruck").pairs)
      distances[pair.source].insert((pair.destination - pair.source + 13) % 13);
    ASSERT_EQ(distances.size(), 13U);
    const std::set<int> left{12, 11, 9, 5}, right{1, 2, 4, 8};
    for (const auto& [rank, to] : distances) EXPECT_EQ(to, func == Func::all_gather ? left : right);
  }
}

TEST(Rabenseifner, SendsHalfAQuarterAnEighthToEverNearerRanks) {
  std::vector<std::pair<GroupRank, std::uint64_t>> sent;
  for (const PairBytes& pair : proved({Func::all_reduce, 8, 800, 4, 0}, "rabenseifner").pairs)
    if (pair.source == 0) sent.emplace_back(pair.destination, pair.bytes);
  // Both directions.
  EXPECT_EQ(sent,
            (std::vector<std::pair<GroupRank, std::uint64_t>>{{1, 800}, {2, 1600}, {4, 3200}}));
}

TEST(Rabenseifner, CutsEveryMessageByItsOwnSize) {
  // 64 elements on 4 ranks: 32, 16, 16, 32 elements in slices of 8.
  const Collective c{Func::all_reduce, 4, 64, 4, 0};
  EXPECT_EQ(proved(c, "rabenseifner", {{}, 1, 32, {}}).messages, 4U * (4 + 2 + 2 + 4));
  EXPECT_EQ(proved(c, "rabenseifner", {{}, 1, 32, {1}}).messages, 4U * (4 + 2 + 2 + 4));
}

TEST(LinearAllToAll, SendsEverythingBeforeItAwaitsAnything) {
  const auto schedule = find_algorithm("generic", Func::all_to_all, "linear")
                            ->make({Func::all_to_all, 4, 5, 4, 0}, {});
  EXPECT_EQ(schedule->actor(1, 0).steps, 6);
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(schedule->step(1, 0, k).send_to[0], (1 + k + 1) % 4);
    EXPECT_TRUE(schedule->step(1, 0, k).recv_from.empty());
    EXPECT_EQ(schedule->step(1, 0, k + 3).recv_from[0], (1 + 3 - k) % 4);
  }
}

TEST(BinomialGather, HandsOnTheBlocksOfWholeSubtrees) {
  // Root 2 of 6: distance 4 (rank 0) brings two blocks, distance 2 (rank 4) two, distance 1 one.
  std::map<std::pair<GroupRank, GroupRank>, std::uint64_t> bytes;
  for (const PairBytes& pair : proved({Func::gather, 6, 10, 4, 2}, "binomial").pairs)
    bytes[{pair.source, pair.destination}] = pair.bytes;
  const std::map<std::pair<GroupRank, GroupRank>, std::uint64_t> expected{
      {{0, 2}, 80}, {{4, 2}, 80}, {{3, 2}, 40}, {{1, 0}, 40}, {{5, 4}, 40}};
  EXPECT_EQ(bytes, expected);
}

}  // namespace
}  // namespace ghostrank
