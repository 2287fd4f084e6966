#include "emulator/shard/ranks/jitter.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

struct Moments {
  double mean = 0, deviation = 0, least = 1;
};

// Draws are a function of their arguments, so the moments are the same in every run.
Moments moments_of(double deviation) {
  constexpr int kRanks = 64, kIterations = 512, kOps = 128;
  Moments m;
  double squares = 0;
  for (std::uint64_t rank = 0; rank < kRanks; ++rank)
    for (std::uint64_t iteration = 0; iteration < kIterations; ++iteration)
      for (std::uint64_t position = 1; position <= kOps; ++position) {
        const double x = jitter_factor(1, rank, iteration, 0, position, deviation);
        m.mean += x;
        squares += x * x;
        m.least = std::min(m.least, x);
      }
  constexpr double kDraws = 1.0 * kRanks * kIterations * kOps;
  m.mean /= kDraws;
  m.deviation = std::sqrt(squares / kDraws - m.mean * m.mean);
  return m;
}

// The tolerances are about four standard errors of four million draws; large deviations have a
// heavy tail.
TEST(Jitter, HasTheMeanAndTheDeviationAskedForAndIsAlwaysPositive) {
  for (const double asked : {0.02, 0.1, 0.3, 0.5, 1.0, 2.0}) {
    const Moments m = moments_of(asked);
    EXPECT_NEAR(m.mean, 1, 0.002 * asked) << asked;
    EXPECT_GT(m.least, least_jitter_factor(asked)) << asked;
    EXPECT_NEAR(m.deviation / asked, 1, asked > 1 ? 0.04 : 0.01) << asked;
    EXPECT_GT(m.least, 0) << asked;
  }
}

TEST(Jitter, IsNoneWhereNoneIsAskedFor) {
  for (std::uint64_t position = 1; position < 100; ++position)
    EXPECT_EQ(jitter_factor(7, 3, 1, 0, position, 0), 1);
}

TEST(Jitter, DependsOnEverythingThatItIsDrawnFrom) {
  const double x = jitter_factor(1, 2, 3, 0, 4, 0.5);
  EXPECT_EQ(x, jitter_factor(1, 2, 3, 0, 4, 0.5));
  EXPECT_NE(x, jitter_factor(2, 2, 3, 0, 4, 0.5));
  EXPECT_NE(x, jitter_factor(1, 3, 3, 0, 4, 0.5));
  EXPECT_NE(x, jitter_factor(1, 2, 4, 0, 4, 0.5));
  EXPECT_NE(x, jitter_factor(1, 2, 3, 1, 4, 0.5));
  EXPECT_NE(x, jitter_factor(1, 2, 3, 0, 5, 0.5));
}

TEST(Jitter, OfAJobLeavesItsMeanStepAsItIs) {
  testing::SmallJob job(1, 1, FabricKind::virtual_time);
  job.spec.run.jitter = 1;
  job.spec.run.iterations = 100;
  for (int i = 0; i < 1000; ++i) job.compute(kPicosPerMilli);
  double seconds = 0;
  for (const IterationReport& i : job.run().iterations) seconds += i.seconds;
  EXPECT_NEAR(seconds / 100, 1, 0.015);
}

}  // namespace
}  // namespace ghostrank
