// SHARP's trees and its ring: sums proved; which communicators get a tree.
#include "collectives/schemes/sharp.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"
#include "collectives/schemes/shared/numbers.h"
#include "tests/collectives/schemes/small_world.h"
#include "tests/collectives/schemes/switched.h"

namespace ghostrank {
namespace {

using testing::on_nics;

constexpr SharpOptions kFewAtOnce{.outstanding = 3, .bytes = 256};

TEST(Sharp, SumsRightWithATreeAndWithout) {
  for (const int trees : {0, 1})
    for (const auto& [nodes, gpus] :
         {std::pair(1, 3), std::pair(2, 1), std::pair(5, 2), std::pair(33, 1)})
      for (const std::uint64_t count : {0, 1, 65, 3'000}) {
        SharpOptions options = kFewAtOnce;
        options.trees = trees;
        const auto ends = sharp_ends(nodes * gpus, options, on_nics(nodes, gpus));
        const AgentProof proof =
            prove(*ends, {Func::all_reduce, nodes * gpus, count, 4, 0}, nodes < 33 ? 36 : 6);
        ASSERT_TRUE(proof.report.ok) << trees << " trees, " << nodes << " x " << gpus << ", count "
                                     << count << ": " << proof.report.error;
        EXPECT_EQ(proof.refused, "");
      }
}

// Plays one all-reduce on a switch that others may have used; returns whether it went by a tree.
bool gets_a_tree(const SharpOptions& options, const Communicator& comm, Site& site) {
  const int ranks = static_cast<int>(comm.nic_of.size());
  const auto ends = sharp_ends(ranks, options, comm);
  const Call call{0, {Func::all_reduce, ranks, 500, 4, 0}, DataType::int32};
  const std::vector<std::int32_t> ones(500, 1), sums(500, ranks);
  const auto bytes = [](const std::vector<std::int32_t>& numbers) {
    const auto all = std::as_bytes(std::span(numbers));
    return std::vector<std::byte>(all.begin(), all.end());
  };
  testing::SmallWorld world(*ends, call, std::vector(ranks, bytes(ones)), &site);
  for (const auto& result : world.play()) EXPECT_EQ(result, bytes(sums));
  // Each rank sends the switch a request for a tree and, if it gets one, 8 messages of data.
  const std::uint64_t asked = static_cast<std::uint64_t>(ranks);
  EXPECT_TRUE(world.notes_to(ranks) == asked || world.notes_to(ranks) == asked + asked * 8);
  return world.notes_to(ranks) > asked;
}

TEST(Sharp, ASecondTreeOfAQuantumSwitchIsRefused) {
  Site site;
  EXPECT_TRUE(gets_a_tree(kFewAtOnce, on_nics(4, 1), site));
  EXPECT_EQ(site.get<SharpTrees>().active, 1);
  EXPECT_FALSE(gets_a_tree(kFewAtOnce, on_nics(4, 1, 4), site))
      << "on other ports of the same switch";
  EXPECT_EQ(site.get<SharpTrees>().active, 1);
  EXPECT_EQ(site.get<SharpTrees>().refused, 1);
}

TEST(Sharp, AQuantum2SwitchHasATreeOnEachPort) {
  Site site;
  SharpOptions options = kFewAtOnce;
  options.per_port = true;
  EXPECT_TRUE(gets_a_tree(options, on_nics(4, 1), site));
  EXPECT_TRUE(gets_a_tree(options, on_nics(4, 1, 4), site)) << "on other ports";
  EXPECT_FALSE(gets_a_tree(options, on_nics(2, 1, 3), site)) << "one of its ports has a tree";
  EXPECT_EQ(site.get<SharpTrees>().active, 2);
  EXPECT_EQ(site.get<SharpTrees>().refused, 1);
}

TEST(Sharp, RefusesWhatItCannotServe) {
  EXPECT_THROW(sharp_ends(1025, kFewAtOnce), std::invalid_argument);
  const auto ends = sharp_ends(2, kFewAtOnce);
  EXPECT_NE(ends->refuses({0, {Func::all_gather, 2, 1, 4, 0}, DataType::int32}), "");
}

}  // namespace
}  // namespace ghostrank
