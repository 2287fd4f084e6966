#include "tools/text/statistics.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/result/mean_interval.h"

namespace ghostrank {
namespace {

TEST(Statistics, OfNothingAreAbsent) {
  const Summary s = summarize({});
  EXPECT_FALSE(s.median || s.mean || s.cv || s.ci95 || s.p99);
}

TEST(Statistics, OneSampleHasAMedianButNoSpread) {
  const Summary s = summarize(std::vector{2.0});
  EXPECT_EQ(s.median, 2.0);
  EXPECT_EQ(s.mean, 2.0);
  EXPECT_FALSE(s.cv || s.ci95);
}

TEST(Statistics, MedianOfAnEvenNumberIsTheMiddle) {
  EXPECT_EQ(summarize(std::vector{4.0, 1.0, 3.0, 2.0}).median, 2.5);
}

TEST(Statistics, IntervalOfTheMeanUsesStudentsT) {
  // Mean 4, standard deviation 1, t(2) = 4.3027: half width 4.3027 / sqrt(3).
  const Summary s = summarize(std::vector{3.0, 4.0, 5.0});
  ASSERT_TRUE(s.ci95);
  EXPECT_NEAR(s.ci95->first, 4 - 4.3027 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(s.ci95->second, 4 + 4.3027 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(*s.cv, 0.25, 1e-12);
}

TEST(Statistics, IntervalOfWhatIsNeverBelowZeroIsNot) {
  const Summary s = summarize(std::vector{1.0, 1.0, 1.0, 1.0, 100.0});
  EXPECT_EQ(s.ci95->first, 0);
  EXPECT_NEAR(s.ci95->second, 20.8 + 2.7764 * 19.8, 1e-2);
  EXPECT_LT(summarize(std::vector{-1.0, 1.0}).ci95->first, -1);
}

TEST(Statistics, QuantilesOfStudentsTMatchPrintedTables) {
  EXPECT_NEAR(student_t95(1), 12.706, 1e-3);
  EXPECT_NEAR(student_t95(30), 2.0423, 1e-4);
  EXPECT_NEAR(student_t95(40), 2.0211, 1e-4);
  EXPECT_NEAR(student_t95(60), 2.0003, 1e-4);
  EXPECT_NEAR(student_t95(120), 1.9799, 1e-4);
}

TEST(Statistics, TailIsTheNearestRankAndNeedsAHundredSamples) {
  std::vector<double> samples;
  for (int i = 1; i <= 99; ++i) samples.push_back(i);
  EXPECT_FALSE(summarize(samples).p99);
  samples.push_back(100);
  EXPECT_EQ(summarize(samples).p99, 99.0);
}

TEST(Statistics, OfWhatChanceHasNoPartInHaveNoInterval) {
  const Summary s = summarize_exact(std::vector{1.0, 2.0, 3.0});
  EXPECT_FALSE(s.ci95);
  EXPECT_EQ(s.mean, 2);
  EXPECT_NEAR(*s.cv, 0.5, 1e-12);
}

}  // namespace
}  // namespace ghostrank
