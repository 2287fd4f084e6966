// The modelled networks give the answers of SimGrid, where it is installed (libsimgrid-dev).
#include "tools/benchmarks/peers/simgrid.h"

#include <gtest/gtest.h>

#include "tools/benchmarks/jobs.h"

namespace ghostrank {
namespace {

TEST(SimGrid, SharesTheLinksOfAContendedFatTreeAsFlowsDo) {
  const auto worst = bench::in_child([] { return bench::transfers_apart(64).worst; });
  ASSERT_TRUE(worst);
  EXPECT_LT(worst->said, 1e-7);
}

TEST(SimGrid, PlaysARingAsLoggpDoes) {
  const auto apart = bench::ring_apart(64, bench::play_ring_by_actors);
  ASSERT_TRUE(apart);
  EXPECT_LT(*apart, 1e-9);
}

// SMPI ends a call after what its own start and end take, too.
TEST(SimGrid, PlaysMpisRingAsLoggpDoes) {
  const auto apart = bench::ring_apart(64, bench::play_ring_by_smpi);
  ASSERT_TRUE(apart);
  EXPECT_LT(*apart, 1e-3);
}

}  // namespace
}  // namespace ghostrank
