// The dilation that `auto` starts with, derived from the plan before anything is played.
#include "emulator/assemble/capacity.h"

#include <gtest/gtest.h>

#include "emulator/traffic/traffic.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

constexpr double kMessage = 1e-7;  // seconds of engine time per message

// Two nodes in one process; steps of one second, in which `messages` leave within `burst_seconds`.
double dilation_of(std::uint64_t messages, double burst_seconds, std::uint64_t credits = 0,
                   int threads = 1) {
  JobSpec spec;
  spec.cluster.nodes = 2;
  TrafficPlan plan;
  CollectiveTraffic& row = plan.collectives.emplace_back();
  row.wire_messages = plan.wire_messages = messages;
  row.wire_credits = credits;
  row.chained_seconds = burst_seconds;
  plan.pairs = {{Nic(0), Nic(spec.cluster.nics_per_node), 1e6, static_cast<double>(messages)}};
  plan.step_seconds_at_least = 1;
  return needs_of(spec, plan, 1, threads, 0, kMessage).dilation_needed;
}

TEST(AutoDilation, IsOneWhereTheMachineHasTimeEnough) { EXPECT_EQ(dilation_of(1'000'000, 1), 1); }

TEST(AutoDilation, IsThatOfTheBusiestPartNotOfTheMeanOfTheStep) {
  // 100 ms of work in 10 ms; `auto` accepts a delay of 2.5 ms in a step of one second.
  EXPECT_EQ(dilation_of(1'000'000, 0.01), 8);
}

TEST(AutoDilation, CountsCreditsAsWork) { EXPECT_EQ(dilation_of(1'000'000, 0.01, 1'000'000), 16); }

TEST(AutoDilation, LetsThreadsShareTheWork) {
  EXPECT_EQ(dilation_of(1'000'000, 0.01, 0, 2), 4);
  EXPECT_EQ(dilation_of(20'000'000, 1, 0, 2), 2);
}

TEST(AutoDilation, LetsAShortBurstBeLate) { EXPECT_EQ(dilation_of(10'000, 0), 1); }

TEST(AutoDilation, GrowsWithTheMeanLoadToo) { EXPECT_EQ(dilation_of(20'000'000, 1), 4); }

TEST(AutoDilation, KnowsWhatTheWireAloneNeeds) {
  JobSpec spec;  // two nodes on two machines
  spec.cluster.nodes = 2;
  spec.cluster.nic.rate_bps = 8e9;
  spec.fabric.kind = FabricKind::ofi;
  TrafficPlan plan;
  plan.wire_messages = 20'000'000;
  plan.pairs = {{Nic(0), Nic(spec.cluster.nics_per_node), 1e6, 20e6}};
  plan.step_seconds_at_least = 1;
  // A NIC sends 1 GB/s but the wire carries 0.5 GB/s, of which the plan may use half.
  const Capacity c = needs_of(spec, plan, 2, 1, 0.5e9, 1e-6);
  EXPECT_EQ(c.wire_dilation, 4);
  EXPECT_GT(c.dilation_needed, 4);  // for the messages
  EXPECT_EQ(needs_of(spec, plan, 1, 1, 0, 1e-6).wire_dilation, 1);
}

TEST(TrafficPlan, LetsNoCallEndBeforeItsLongestChainOfMessages) {
  SmallJob job(8, 1, FabricKind::memory);
  job.spec.cluster.nic.latency = 10 * kPicosPerMicro;
  for (int call = 0; call < 5; ++call) job.collective(Func::all_reduce, 8);
  const CollectiveTraffic row = plan_traffic(job.spec, job.workload).collectives.front();
  EXPECT_LT(row.seconds_at_least, 1e-7);
  EXPECT_DOUBLE_EQ(row.chained_seconds, 5 * 14 * 10e-6);  // a ring of 8 takes 14 steps
}

TEST(TrafficPlan, CountsTheCreditsOfLibrariesThatHaveThem) {
  SmallJob job(4, 1, FabricKind::memory);
  job.collective(Func::all_reduce, 1 << 16);
  const auto row = [&](const char* library) {
    job.spec.collectives.library = library;
    return plan_traffic(job.spec, job.workload).collectives.front();
  };
  EXPECT_EQ(row("generic").wire_credits, 0u);
  EXPECT_GT(row("gloo").wire_credits, 0u);
  EXPECT_EQ(row("gloo").wire_credits, row("gloo").wire_messages);
}

}  // namespace
}  // namespace ghostrank
