// The durations of calls: all of them while they are few, a fair sample of many.
#include "emulator/result/sampled_seconds.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/median.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMost = SampledSeconds::kMost;

double median_of(const SampledSeconds& sampled) {
  return median({sampled.values().begin(), sampled.values().end()});
}

TEST(SampledSeconds, KeepEveryCallWhileTheyAreFew) {
  SampledSeconds sampled;
  std::vector<float> all;
  for (std::size_t i = 0; i < kMost; ++i) {
    sampled.add(static_cast<double>(i), i);
    all.push_back(static_cast<float>(i));
  }
  EXPECT_EQ(sampled.values(), all);
  EXPECT_EQ(sampled.halvings(), 0u);
}

TEST(SampledSeconds, StayFewHoweverManyCallsThereAre) {
  SampledSeconds sampled;
  for (std::size_t i = 0; i < 1'000'000; ++i) sampled.add(1, i);
  EXPECT_LE(sampled.values().size(), kMost);
  const double stands_for =
      static_cast<double>(sampled.values().size() << sampled.halvings()) / 1e6;
  EXPECT_NEAR(stands_for, 1, 0.1);
}

TEST(SampledSeconds, MedianIsThatOfAllWithinTwoPerCentOfTheirRanks) {
  SampledSeconds rising;
  for (std::size_t i = 0; i < 300'000; ++i) rising.add(static_cast<double>(i), i);
  EXPECT_NEAR(median_of(rising), 150'000, 0.02 * 300'000);
}

// 64 groups in turns, each with its own duration: taking every 64th call would see only one of
// them.
TEST(SampledSeconds, SeeEveryGroupWhereGroupsTakeTurns) {
  SampledSeconds sampled;
  for (std::size_t i = 0; i < 64 * 4096; ++i) sampled.add(static_cast<double>(i % 64), i);
  std::vector<float> seen = sampled.values();
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), 64u);
}

TEST(SampledSeconds, OfTwoShardsWeighByTheirCalls) {
  SampledSeconds few, many;
  for (std::size_t i = 0; i < 30'000; ++i) few.add(1, i);
  for (std::size_t i = 0; i < 270'000; ++i) many.add(2, 30'000 + i);
  for (const auto& [first, second] : {std::pair(few, many), std::pair(many, few)}) {
    SampledSeconds both = first;
    both.merge(second);
    EXPECT_LE(both.values().size(), kMost);
    const auto ones = std::count(both.values().begin(), both.values().end(), 1.0f);
    EXPECT_NEAR(static_cast<double>(ones) / static_cast<double>(both.values().size()), 0.1, 0.03);
  }
}

TEST(SampledSeconds, AreTheSameForEveryNumberOfShards) {
  SampledSeconds one;
  std::vector<SampledSeconds> parts(3);
  for (std::size_t i = 0; i < 50'000; ++i) {
    one.add(static_cast<double>(i), i);
    parts[i * i % 7 % 3].add(static_cast<double>(i), i);
  }
  SampledSeconds sum;
  for (const SampledSeconds& part : parts) sum.merge(part);
  std::vector<float> together = sum.values();
  std::sort(together.begin(), together.end());
  EXPECT_EQ(together, one.values());
  EXPECT_EQ(sum.halvings(), one.halvings());
}

TEST(SampledSeconds, AreTheSameInAnyOrderOfTheCalls) {
  constexpr std::size_t kCalls = 50'000;
  SampledSeconds there, back;
  for (std::size_t i = 0; i < kCalls; ++i) {
    there.add(static_cast<double>(i), i);
    back.add(static_cast<double>(kCalls - 1 - i), kCalls - 1 - i);
  }
  std::vector<float> reversed = back.values();
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(there.values(), reversed);
  EXPECT_EQ(there.halvings(), back.halvings());
}

// A bucket's calls take 1 or 2 s, as often one as the other: the median is either.
TEST(SampledSeconds, MedianBetweenTwoTimesOfAKindIsUncertain) {
  SampledSeconds sampled;
  for (std::uint32_t i = 0; i < 100; ++i) sampled.add(i % 2 == 0 ? 1 : 2, i);
  EXPECT_EQ(sampled.median_interval(), std::pair(1.0, 2.0));
}

// Two buckets with constant times: the median is certain, though it lies between them.
TEST(SampledSeconds, MedianBetweenTwoKindsIsCertain) {
  SampledSeconds sampled;
  for (std::uint32_t i = 0; i < 100; ++i) sampled.add(i % 2 == 0 ? 1 : 2, i, i % 2);
  EXPECT_EQ(sampled.median_interval(), std::pair(1.5, 1.5));
}

TEST(SampledSeconds, IntervalOfTheMedianNarrowsWithTheCalls) {
  SampledSeconds few, many;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const double value = 1 + static_cast<double>(i * 7919 % 4000) / 4000;  // 1 to 2, shuffled
    many.add(value, i);
    if (i < 40) few.add(value, i);
  }
  const auto [low, high] = many.median_interval();
  EXPECT_LT(low, 1.5);
  EXPECT_GT(high, 1.5);
  EXPECT_NEAR(high - low, 2 * 1.96 * 0.5 / std::sqrt(4000.0), 0.01);
  EXPECT_GT(few.median_interval().second - few.median_interval().first, 3 * (high - low));
}

// Shards are merged in any order.
TEST(SampledSeconds, IntervalOfTheMedianDoesNotDependOnTheOrderOfCalls) {
  SampledSeconds there, back;
  for (std::uint32_t i = 0; i < 500; ++i) {
    there.add(static_cast<double>(i % 17), i, i % 3);
    back.add(static_cast<double>((499 - i) % 17), 499 - i, (499 - i) % 3);
  }
  EXPECT_EQ(there.median_interval(), back.median_interval());
}

// Which message is first at a NIC alternates: 400 calls do not make the median sure.
TEST(SampledSeconds, CallsOfTheMediansKindLieApart) {
  SampledSeconds alternating;
  for (std::uint32_t i = 0; i < 400; ++i) {
    alternating.add(i % 2 == 0 ? 154 : 158, 3 * i, 1);
    alternating.add(10, 3 * i + 1, 2);   // kinds that the median does not lie in,
    alternating.add(500, 3 * i + 2, 3);  // and that are alike
  }
  EXPECT_EQ(alternating.spread_at_median(), 2);
}

TEST(SampledSeconds, FewCallsFarOffDoNotSpreadTheMedian) {
  SampledSeconds calls;
  for (std::uint32_t i = 0; i < 100; ++i) calls.add(i % 10 == 0 ? 9 : 1, i);
  EXPECT_EQ(calls.spread_at_median(), 0);
  EXPECT_EQ(SampledSeconds().spread_at_median(), 0);
}

}  // namespace
}  // namespace ghostrank
