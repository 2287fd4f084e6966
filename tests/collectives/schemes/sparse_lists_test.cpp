// Sparse all-reduces that exchange lists: proved with tensors of every sparsity.
#include "collectives/schemes/sparse_lists.h"

#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"

namespace ghostrank {
namespace {

TEST(SparseLists, SumRightForEveryTypeAndSize) {
  for (const SparseLists form : {SparseLists::all_gather, SparseLists::split_all_gather})
    for (const int size : {1, 2, 3, 4, 8})
      for (const std::uint64_t count : {0, 1, 3, 100, 20'000}) {
        const AgentProof proof = prove(*sparse_list_ends(size, form),
                                       {Func::all_reduce, size, count, 4, 0}, count > 100 ? 6 : 24);
        EXPECT_TRUE(proof.report.ok)
            << size << " ranks, count " << count << ": " << proof.report.error;
        EXPECT_EQ(proof.refused, "");
      }
}

TEST(SparseLists, SumRightWhereRanksAreACallAhead) {
  for (const SparseLists form : {SparseLists::all_gather, SparseLists::split_all_gather})
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      auto calls = calls_like({Func::all_reduce, 5, 700, 4, 0}, DataType::int32, 8);
      for (Call& call : calls) call.sparsity = {0.3, seed % 2 == 0 ? 9U : 1U, Overlap::random};
      const AgentReport report =
          check(*sparse_list_ends(5, form), calls,
                {.seed = seed, .no_room = 0.2, .slow = 0.3, .pause = 50'000'000, .overlap = 3});
      EXPECT_TRUE(report.ok) << report.error;
    }
}

}  // namespace
}  // namespace ghostrank
