// NCCL's PAT, proved by the checker and compared with patterns worked out by hand.
#include "collectives/nccl/schedules/pat.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/schedule.h"
#include "tests/collectives/nccl/support.h"

namespace ghostrank {
namespace {

using namespace nccl_testing;  // NOLINT: this file is made of them

TEST(NcclPat, IsRightForEverySizeOfGroup) {
  for (const char* library : kLibraries)
    for (const Func func : {Func::all_gather, Func::reduce_scatter})
      for (int size = 1; size <= 33; ++size)
        for (const std::uint64_t count : {0, 1, 13, 300})
          for (const int channels : {1, 3}) {
            const Collective c{func, size, count, 4, 0};
            const auto schedule =
                find_algorithm(library, func, "pat")->make(c, communicator(channels));
            const CheckReport report = check(*schedule);
            ASSERT_TRUE(report.ok) << describe(*schedule, {}) << ": " << report.error;
            const std::uint64_t least = find_algorithm(library, func, "pat")->cost(c).bytes;
            if (func == Func::all_gather || (size & (size - 1)) == 0)
              ASSERT_EQ(report.bytes, least) << describe(*schedule, {});
            else
              ASSERT_GE(report.bytes, least) << describe(*schedule, {});
          }
}

TEST(NcclPat, IsRightWithMoreDataThanFitsAMessage) {
  for (const Func func : {Func::all_gather, Func::reduce_scatter})
    for (const int size : {2, 3, 5, 6, 8, 11, 16})
      for (const std::uint64_t count : {4'000, 30'000, 100'003}) {
        const Collective c{func, size, count, 8, 0};
        const auto schedule = find_algorithm("nccl-2.30", func, "pat")->make(c, communicator(1));
        const CheckReport report = check(*schedule);
        ASSERT_TRUE(report.ok) << describe(*schedule, {}) << ": " << report.error;
      }
}

// Every pattern delivers every block once, however many blocks fit into a chunk.
TEST(NcclPat, IsCompleteForEveryDepthOfAggregation) {
  for (const Func func : {Func::all_gather, Func::reduce_scatter})
    for (int n = 2; n <= 130; ++n)
      for (const std::uint64_t blocks_per_chunk : {1, 2, 4, 8, 1000}) {
        const NcclPatPattern pattern = nccl_pat_pattern(func, n, 1024, 1024 * blocks_per_chunk);
        std::multiset<int> blocks;
        for (const NcclPatPattern::Message& m : pattern.messages)
          for (const int block : m.blocks)
            if (block != NcclPatPattern::kHole)
              blocks.insert(func == Func::all_gather ? block + (1 << m.dimension) : block);
        std::multiset<int> all;
        for (int i = 1; i < n; ++i) all.insert(i);
        ASSERT_EQ(blocks, all) << n << ", " << blocks_per_chunk;
        std::size_t recvs = 0;
        for (const NcclPatPattern::Step& step : pattern.steps) recvs += step.recv >= 0 ? 1 : 0;
        ASSERT_EQ(recvs, pattern.messages.size());
      }
}

TEST(NcclPat, SendsHolesWhereRanksAreNoPowerOfTwo) {
  const auto blocks_sent = [](Func func, int size) {
    std::size_t blocks = 0;
    for (const auto& m : nccl_pat_pattern(func, size, 1024, 1 << 19).messages)
      blocks += m.blocks.size();
    return blocks;
  };
  EXPECT_EQ(blocks_sent(Func::reduce_scatter, 16), 15U);
  EXPECT_EQ(blocks_sent(Func::reduce_scatter, 17), 31U);  // 16 blocks and 15 holes
  EXPECT_EQ(blocks_sent(Func::all_gather, 17), 16U);
}

TEST(NcclPat, OfFewRanksIsAsWorkedOutByHand) {
  const auto sends = [](Func func, int size) {
    std::string text;
    for (const auto& m : nccl_pat_pattern(func, size, 1024, 1 << 16).messages)
      text += std::to_string(1 << m.dimension) + "x" + std::to_string(m.blocks.size()) + " ";
    return text;
  };
  EXPECT_EQ(sends(Func::all_gather, 8), "4x1 2x2 1x4 ");
  EXPECT_EQ(sends(Func::reduce_scatter, 8), "1x4 2x2 4x1 ");
  EXPECT_EQ(sends(Func::reduce_scatter, 3), "2x1 1x1 ");
}

}  // namespace
}  // namespace ghostrank
