// ATP's agents: proved for their claims, with aggregators for all packets, for some and for none.
#include "collectives/schemes/atp.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"
#include "collectives/schemes/atp/agents.h"
#include "collectives/schemes/shared/numbers.h"
#include "tests/collectives/schemes/small_world.h"

namespace ghostrank {
namespace {

constexpr AtpOptions kFewAggregators{.window = 6, .aggregators = 6, .timeout = 200'000'000};

Communicator on_nodes(int nodes, int gpus) {
  Communicator comm;
  for (int r = 0; r < nodes * gpus; ++r) comm.node_of.push_back(r / gpus);
  return comm;
}

TEST(Atp, SumsRightWhateverBecomesOfPacketsAndHoweverFewAggregatorsThereAre) {
  for (const int aggregators : {0, 3, 6})
    for (const auto& [nodes, gpus] :
         {std::pair(1, 2), std::pair(2, 1), std::pair(5, 1), std::pair(3, 2)})
      for (const std::uint64_t count : {0, 1, 63, 1'500}) {
        AtpOptions options = kFewAggregators;
        options.aggregators = aggregators;
        const auto ends = atp_ends(nodes * gpus, options, on_nodes(nodes, gpus));
        const AgentProof proof = prove(*ends, {Func::all_reduce, nodes * gpus, count, 4, 0}, 36);
        ASSERT_TRUE(proof.report.ok) << aggregators << " aggregators, " << nodes << " x " << gpus
                                     << ", count " << count << ": " << proof.report.error;
        EXPECT_NE(proof.refused.find("adds int32"), std::string::npos);
      }
}

TEST(Atp, HoldsAllFourClaims) {
  for (const int aggregators : {0, 3, 6}) {
    AtpOptions options = kFewAggregators;
    options.aggregators = aggregators;
    const auto calls = calls_like({Func::all_reduce, 4, 300, 4, 0}, DataType::float32, 2);
    for (const Claim& claim : check_claims(*atp_ends(4, options), calls, 9)) {
      EXPECT_TRUE(claim.holds()) << claim.text();
      EXPECT_GT(claim.met, 0u) << claim.misfortune;
    }
  }
}

// Numbers of packets have 32 bits, and 2^32 is no multiple of the window.
TEST(Atp, GoesOnWhereNumbersOfPacketsWrap) {
  AtpOptions options = kFewAggregators;
  for (const int aggregators : {0, 3, 6})
    for (const std::uint32_t windows : {1, 2, 3}) {
      options.aggregators = aggregators;
      options.first_packet = (0xffffffffu / 6 - windows) * 6;
      const auto ends = atp_ends(4, options);
      for (const DataType type : {DataType::int32, DataType::float32}) {
        const auto calls = calls_like({Func::all_reduce, 4, 800, 4, 0}, type, 4);
        AgentCheckOptions lossy;
        lossy.misfortunes = {0.05, 0.05, 0.05, 0.05};
        lossy.most_events = 1'000'000;
        for (const AgentCheckOptions& o : {AgentCheckOptions{}, lossy}) {
          const AgentReport report = check(*ends, calls, o);
          EXPECT_TRUE(report.ok) << aggregators << " aggregators: " << report.error;
        }
      }
    }
  EXPECT_THROW(atp_ends(4, {.window = 6, .first_packet = 1}), std::invalid_argument);
}

std::vector<float> all_reduced(const std::vector<std::vector<float>>& numbers) {
  const auto ends = atp_ends(static_cast<int>(numbers.size()), kFewAggregators);
  const Collective c{Func::all_reduce, ends->size(), numbers[0].size(), 4, 0};
  std::vector<std::vector<std::byte>> tensors;
  for (const auto& of_rank : numbers)
    tensors.push_back(bytes_of_floats(DataType::float32, of_rank));
  testing::SmallWorld world(*ends, {0, c, DataType::float32}, tensors);
  return floats_of(DataType::float32, world.play()[0]);
}

TEST(Atp, FloatsAreMillionthsUnlessTheyAreTooLarge) {
  const std::vector<float> small{0.1f, -3.25f, 1e-9f, 0.0f}, large{1e9f, 1e-3f, 2e30f, -5.0f};
  const std::vector<float> sums = all_reduced({small, small, small});
  for (std::size_t i = 0; i < small.size(); ++i) EXPECT_NEAR(sums[i], 3 * small[i], 1.6e-6);
  // A single large number makes the server ask for the packet's elements as they are.
  const std::vector<float> mixed = all_reduced({small, large, small});
  for (std::size_t i = 0; i < small.size(); ++i)
    EXPECT_EQ(mixed[i], static_cast<float>(2.0 * static_cast<double>(small[i]) +
                                           static_cast<double>(large[i])));
  // Numbers that fit alone, but whose sum does not.
  EXPECT_EQ(all_reduced({{1500.0f}, {1500.0f}, {0.5f}})[0], 3000.5f);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(all_reduced({{kInfinity}, {1.0f}})[0], kInfinity);
  EXPECT_TRUE(std::isnan(all_reduced({{std::nanf("")}, {1.0f}})[0]));
}

TEST(Atp, AnOverflowStaysMarked) {
  std::vector<std::int32_t> sum;
  const std::vector<std::int32_t> much{std::numeric_limits<std::int32_t>::max() - 1}, more{5},
      less{-1'000};
  EXPECT_TRUE(atp::add_units(sum, much));
  EXPECT_FALSE(atp::add_units(sum, more));
  // The sum of all three would fit: the first two packets' mark must last.
  std::vector<std::vector<std::byte>> tensors;
  for (const auto& of_rank : {much, more, less}) {
    const auto bytes = std::as_bytes(std::span(of_rank));
    tensors.emplace_back(bytes.begin(), bytes.end());
  }
  const auto ends = atp_ends(3, kFewAggregators);
  testing::SmallWorld world(*ends, {0, {Func::all_reduce, 3, 1, 4, 0}, DataType::int32}, tensors);
  std::int32_t result = 0;
  std::memcpy(&result, world.play()[2].data(), sizeof result);
  EXPECT_EQ(result, much[0] - 1'000 + 5);
  // The checker's whole numbers, up to 2^32, overflow all the time; the sums are right.
  const auto calls = calls_like({Func::all_reduce, 3, 500, 4, 0}, DataType::int32, 2);
  const AgentReport report = check(*atp_ends(3, kFewAggregators), calls, {});
  EXPECT_TRUE(report.ok) << report.error;
}

TEST(Atp, RefusesWhatItCannotServe) {
  EXPECT_THROW(atp_ends(33, kFewAggregators), std::invalid_argument);
  EXPECT_NO_THROW(atp_ends(64, kFewAggregators, on_nodes(32, 2)));
  EXPECT_THROW(atp_ends(4, {.window = 0}), std::invalid_argument);
  EXPECT_NE(
      atp_ends(2, kFewAggregators)->refuses({0, {Func::all_reduce, 2, 1, 8, 0}, DataType::int64}),
      "");
  EXPECT_NE(
      atp_ends(2, kFewAggregators)->refuses({0, {Func::broadcast, 2, 1, 4, 0}, DataType::int32}),
      "");
}

}  // namespace
}  // namespace ghostrank
