#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "emulator/common/random.h"
#include "tools/compare/ab/statistics.h"

namespace ghostrank {
namespace {

// Log-normal noise of one run: standard deviation `spread` relative to the value (Box-Muller).
double noise(RandomBits& random, double spread) {
  const double radius = std::sqrt(-2 * std::log(random.unit()));
  return std::exp(spread * radius * std::cos(2 * M_PI * random.unit()));
}

struct Outcomes {
  int faster = 0, slower = 0;
  int calls() const { return faster + slower; }
};

// Compares two variants `comparisons` times. A run's noise is its own; `shared` is that of a block.
Outcomes outcomes(int comparisons, std::size_t runs, double effect, double spread, double shared) {
  Outcomes found;
  for (int i = 0; i < comparisons; ++i) {
    RandomBits random{4711, static_cast<std::uint64_t>(i)};
    std::vector<double> a, b;
    for (std::size_t block = 0; block < runs; ++block) {
      const double common = 0.02 * (shared > 0 ? noise(random, shared) : 1);
      a.push_back(common * noise(random, spread));
      b.push_back(common * noise(random, spread) * effect);
    }
    const Judgement j = judge(ratio_of_medians(b, a, static_cast<std::uint64_t>(i)), 0);
    found.faster += j.verdict == Verdict::faster;
    found.slower += j.verdict == Verdict::slower;
  }
  return found;
}

TEST(AbStatistics, SeesNoEffectWhereThereIsNone) {
  // A 95 % interval excludes the truth once in twenty: 10 of 200, and hardly ever more than 16.
  EXPECT_LE(outcomes(200, 8, 1, 0.01, 0).calls(), 16);
  EXPECT_LE(outcomes(200, 8, 1, 0.05, 0).calls(), 16);
  EXPECT_LE(outcomes(200, 8, 1, 0.01, 0.05).calls(), 16);
  EXPECT_LE(outcomes(200, kLeastBlocksForAnEffect, 1, 0.01, 0).calls(), 16);
}

TEST(AbStatistics, FindsAnEffectOfThreePercentUnderNoiseOfOne) {
  // 8 runs of 1 % noise find it in about 97 of 100 comparisons, and never the other way round.
  const Outcomes found = outcomes(200, 8, 1.03, 0.01, 0);
  EXPECT_GE(found.slower, 180);
  EXPECT_EQ(found.faster, 0);
  EXPECT_GE(outcomes(200, 8, 1 / 1.03, 0.01, 0).faster, 180);
}

TEST(AbStatistics, IsTheSameForTheSameSeed) {
  const std::vector<double> a{1, 1.1, 0.9, 1.05, 0.98, 1.02}, b{2, 2.2, 1.7, 2.1, 1.9, 2.05};
  const RatioEstimate one = ratio_of_medians(b, a, 7), again = ratio_of_medians(b, a, 7),
                      other = ratio_of_medians(b, a, 8);
  EXPECT_EQ(one.ci95->low, again.ci95->low);
  EXPECT_EQ(one.ci95->high, again.ci95->high);
  EXPECT_NEAR(one.ci95->low, other.ci95->low, 0.1);
  EXPECT_DOUBLE_EQ(one.value, 2.025 / 1.01);
  EXPECT_LT(one.ci95->low, one.value);
  EXPECT_GT(one.ci95->high, one.value);
}

TEST(AbStatistics, KeepsTheRunsOfABlockTogether) {
  // Blocks differ a hundredfold, the ratio within each is exactly 2.
  const std::vector<double> a{1, 10, 100, 3, 30, 7}, b{2, 20, 200, 6, 60, 14};
  const RatioEstimate ratio = ratio_of_medians(b, a, 1);
  EXPECT_DOUBLE_EQ(ratio.ci95->low, 2);
  EXPECT_DOUBLE_EQ(ratio.ci95->high, 2);
}

TEST(AbStatistics, CallsNothingFromFewRuns) {
  const std::vector<double> a{1, 1, 1, 1, 1}, b{2, 2, 2, 2, 2};
  EXPECT_EQ(judge(ratio_of_medians(b, a, 1), 0).verdict, Verdict::inconclusive);
  const std::vector<double> more_a{1, 1, 1, 1, 1, 1}, more_b{2, 2, 2, 2, 2, 2};
  EXPECT_EQ(judge(ratio_of_medians(more_b, more_a, 1), 0).verdict, Verdict::slower);
  EXPECT_FALSE(ratio_of_medians({b.data(), 1}, {a.data(), 1}, 1).ci95);
}

TEST(AbStatistics, CallsAnEffectOnlyBeyondTheMargin) {
  const auto estimate = [](double value, double low, double high) {
    return RatioEstimate{value, Interval{low, high}, 8};
  };
  EXPECT_EQ(judge(estimate(0.9, 0.85, 0.95), 0).verdict, Verdict::faster);
  EXPECT_EQ(judge(estimate(1.1, 1.05, 1.15), 0.05).verdict, Verdict::slower);
  EXPECT_EQ(judge(estimate(1.1, 1.05, 1.15), 0.12).verdict, Verdict::inconclusive);
  EXPECT_EQ(judge(estimate(1.1, 0.99, 1.2), 0).verdict, Verdict::inconclusive);
  EXPECT_EQ(judge(estimate(1.01, 0.99, 1.03), 0.05).verdict, Verdict::same);
  EXPECT_EQ(judge(estimate(1, 1, 1), 0).verdict, Verdict::inconclusive);
  EXPECT_EQ(judge_exact(1, 0).verdict, Verdict::same);
  EXPECT_EQ(judge_exact(1.001, 0).verdict, Verdict::slower);
  EXPECT_EQ(judge_exact(0.999, 0.01).verdict, Verdict::same);
  EXPECT_EQ(judge_exact(std::nan(""), 0).verdict, Verdict::inconclusive);  // steps of 0 s
}

TEST(AbStatistics, DrawsEveryOrderOfABlockEquallyOften) {
  int first[3] = {};
  for (std::size_t block = 0; block < 3000; ++block) {
    std::vector<std::size_t> order = order_in_block(3, block, 5);
    ++first[order[0]];
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2}));
  }
  for (const int n : first) EXPECT_NEAR(n, 1000, 120);  // 4.6 standard deviations
  EXPECT_EQ(order_in_block(5, 3, 9), order_in_block(5, 3, 9));
}

}  // namespace
}  // namespace ghostrank
