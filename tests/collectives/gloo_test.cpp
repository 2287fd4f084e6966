// Gloo's schedules against numbers from its own formulas, and against byte counters of its
// connections.
#include "collectives/gloo/gloo.h"

#include <vector>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

CheckReport proved(const Collective& c) {
  const CheckReport report =
      check(*find_algorithm("gloo", c.func, "auto")->make(c, {}), {.pairs = true});
  EXPECT_TRUE(report.ok) << report.error;
  return report;
}

// The messages that a rank sends, in order, as elements and destination.
std::vector<std::pair<GroupRank, std::uint64_t>> sent_by(const Schedule& schedule, GroupRank r) {
  std::vector<std::pair<GroupRank, std::uint64_t>> sent;
  for (int a = 0; a < schedule.actors(r); ++a)
    for (int k = 0; k < schedule.actor(r, a).steps; ++k) {
      const Step step = schedule.step(r, a, k);
      for (const GroupRank to : step.send_to) sent.emplace_back(to, step.send.count);
    }
  return sent;
}

TEST(GlooAllReduce, Sends12SegmentsOf512KiBToRankMinus1For4MiBOnFourRanks) {
  const Collective c{Func::all_reduce, 4, kMiB, 4, 0};
  const auto schedule = make_gloo_ring(c, {});
  for (GroupRank r = 0; r < 4; ++r) {
    const auto sent = sent_by(*schedule, r);
    ASSERT_EQ(sent.size(), 12U);
    for (const auto& [to, elements] : sent) {
      EXPECT_EQ(to, (r + 3) % 4);
      EXPECT_EQ(elements * 4, 512U << 10);
    }
  }
}

TEST(GlooAllReduce, Sends12SegmentsOf500BytesFor4000BytesOnFourRanks) {
  const CheckReport report = proved({Func::all_reduce, 4, 1000, 4, 0});
  ASSERT_EQ(report.pairs.size(), 4U);
  for (const PairBytes& pair : report.pairs) {
    EXPECT_EQ(pair.destination, (pair.source + 3) % 4);
    EXPECT_EQ(pair.messages, 12U);
    EXPECT_EQ(pair.bytes, 12U * 500);
  }
}

TEST(GlooAllReduce, Sends4MessagesOf1MiBFor4MiBOnTwoRanks) {
  const auto schedule = make_gloo_ring({Func::all_reduce, 2, kMiB, 4, 0}, {});
  const auto sent = sent_by(*schedule, 1);
  EXPECT_EQ(sent, (std::vector<std::pair<GroupRank, std::uint64_t>>(4, {0, kMiB / 4})));
}

TEST(GlooAllReduce, TakesMoreSegmentsPerRankBeyondOneMiBEach) {
  const GlooSegments cut = gloo_all_reduce_segments({Func::all_reduce, 4, 9 * kMiB, 4, 0});
  EXPECT_EQ(cut.all, 36U);  // 36 MiB
  EXPECT_EQ(cut.per_rank, 9U);
  EXPECT_EQ(cut.elements * 4, kMiB);
}

TEST(GlooAllReduce, LeavesOutSegmentsBeyondTheBuffer) {
  // 10 elements on 4 ranks: 8 segments of 2 elements; the last 3 lie beyond the buffer.
  const CheckReport report = proved({Func::all_reduce, 4, 10, 4, 0});
  EXPECT_EQ(report.messages, 2U * 3 * 5);
  EXPECT_EQ(report.bytes, 2U * 3 * 40);
}

TEST(GlooAllReduce, StartsItsSecondOperationBeforeTheFirstHasArrived) {
  const auto schedule = make_gloo_ring({Func::all_reduce, 4, kMiB, 4, 0}, {});
  EXPECT_EQ(schedule->flow_control().posting.receives, 2);
  EXPECT_EQ(schedule->flow_control().posting.sends, 2);
  for (const int k : {0, 1}) EXPECT_TRUE(schedule->step(0, 0, k).recv_from.empty());
  const Step third = schedule->step(0, 0, 2);
  EXPECT_EQ(third.recv.offset, 4 * kMiB / 8);  // chunk 2, which is rank 1's
  EXPECT_EQ(third.send.offset, 4 * kMiB / 8);  // sends on the chunk that just came
  EXPECT_EQ(schedule->actor(0, 0).steps, 2 * (6 + 2));
}

TEST(GlooAllGather, SendsEveryBlockInTwoHalvesToRankPlus1) {
  const CheckReport report = proved({Func::all_gather, 4, 1000, 4, 0});
  ASSERT_EQ(report.pairs.size(), 4U);
  for (const PairBytes& pair : report.pairs) {
    EXPECT_EQ(pair.destination, (pair.source + 1) % 4);
    EXPECT_EQ(pair.messages, 6U);
    EXPECT_EQ(pair.bytes, 3U * 4000);
  }
}

TEST(GlooReduce, IsProvedWithManySegmentsPerRankFromEveryRoot) {
  // Elements as large as a segment, so that a few of them make many segments.
  for (const int size : {2, 3, 4, 7})
    for (const std::uint64_t count : {1, 5, 14, 16, 33, 100})
      for (GroupRank root = 0; root < size; ++root) {
        const Collective c{Func::reduce, size, count, static_cast<std::uint32_t>(kMiB), root};
        const CheckReport report = proved(c);
        const Cost cost = find_algorithm("gloo", c.func, "ring")->cost(c);
        EXPECT_EQ(report.bytes, cost.bytes) << size << ' ' << count << ' ' << root;
        EXPECT_EQ(report.messages, cost.messages) << size << ' ' << count << ' ' << root;
        if (!cost.most_steps) {
          EXPECT_EQ(report.rounds, cost.steps) << size << ' ' << count;
        }
      }
}

TEST(GlooReduce, GoesOnAfterTheReduceScatterIsComplete) {
  // 4 ranks, 40 segments: 30 iterations would suffice, gloo plays 38; then 3 chunks go to the root.
  const Collective c{Func::reduce, 4, 40, static_cast<std::uint32_t>(kMiB), 0};
  EXPECT_EQ(proved(c).messages, 4U * 38 + 3);
}

TEST(GlooBroadcast, ReachesTheNearestRanksFirst) {
  const auto schedule =
      find_algorithm("gloo", Func::broadcast, "auto")->make({Func::broadcast, 6, 10, 4, 1}, {});
  using Sent = std::vector<std::pair<GroupRank, std::uint64_t>>;
  EXPECT_EQ(sent_by(*schedule, 1), (Sent{{2, 10}, {3, 10}, {5, 10}}));
  EXPECT_EQ(sent_by(*schedule, 2), (Sent{{4, 10}, {0, 10}}));
  EXPECT_EQ(sent_by(*schedule, 3), (Sent{}));
}

TEST(GlooFraming, AccountsForWhatItsConnectionsCarryBesidesThePayload) {
  // 4 MiB on two ranks over one connection: a rank sends 4 messages and receives 4, and its socket
  // sends 4,194,880 bytes.
  const std::uint64_t messages = 4;
  const std::uint64_t sent =
      messages * (kGlooFraming.preamble_bytes + kGlooFraming.send_ready_bytes);
  EXPECT_EQ(4 * kMiB + sent + messages * kGlooFraming.recv_ready_bytes, 4'194'880U);
}

using Sent = std::vector<std::pair<GroupRank, std::uint64_t>>;

std::unique_ptr<Schedule> halving(int size, std::uint64_t count) {
  return make_gloo_halving({Func::all_reduce, size, count, 4, 0}, {});
}

TEST(GlooHalvingDoubling, HalvesWithTheNearestRankFirstAndAnswersEveryWindow) {
  // 10 elements in chunks of 3, 3, 3, 1: rank 1 gives away elements 0 to 5, then the last chunk.
  const auto schedule = halving(4, 10);
  EXPECT_EQ(sent_by(*schedule, 1),
            (Sent{{0, 6}, {0, 1}, {3, 1}, {3, 1}, {3, 3}, {3, 1}, {0, 4}, {0, 1}}));
  EXPECT_EQ(schedule->step(1, 0, 2).send, (Block{9, 1}));
  EXPECT_EQ(schedule->step(1, 0, 4).recv, (Block{0, 1, Buffer::none}));
}

TEST(GlooHalvingDoubling, ScattersTheWindowsOfASmallerBlockToTheNextLargerOne) {
  // Blocks of 4 and 2; rank 5 keeps the second half, which ranks 1 and 3 reduce and send back.
  const auto schedule = halving(6, 8);
  EXPECT_EQ(sent_by(*schedule, 5), (Sent{{4, 4}, {4, 1}, {1, 2}, {3, 2}, {4, 4}, {4, 1}}));
  EXPECT_EQ(sent_by(*schedule, 1),
            (Sent{{0, 4}, {0, 1}, {3, 2}, {3, 1}, {5, 2}, {3, 2}, {3, 1}, {0, 4}, {0, 1}}));
}

TEST(GlooHalvingDoubling, AnswersEvenWhereThereIsNothingToSend) {
  // One element: only the lower half of every window contains it.
  EXPECT_EQ(sent_by(*halving(4, 1), 3), (Sent{{2, 1}, {2, 1}, {1, 1}, {1, 1}, {2, 1}}));
}

}  // namespace
}  // namespace ghostrank
