// The dilation that `auto` starts with, derived from the plan before anything is played.
#include "emulator/assemble/capacity.h"

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/schedule.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
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

TEST(AutoDilation, CountsTheLatencyThatNoPlayOfOneProcessEndsBefore) {
  JobSpec spec;
  spec.cluster.nodes = 2;
  spec.cluster.nic.latency = 2 * kPicosPerMicro;
  TrafficPlan plan;  // 20 messages of 0 B, which nothing answers
  plan.wire_messages = plan.collectives.emplace_back().wire_messages = 20;
  plan.pairs = {{Nic(0), Nic(spec.cluster.nics_per_node), 0, 20}};
  const auto dilation = [&](int processes, int iterations) {
    return needs_of(spec, plan, processes, 1, 0, kMessage, iterations).dilation_needed;
  };
  EXPECT_EQ(dilation(1, 1), 400);  // 2 us of work, of which 5 ns may be late
  EXPECT_EQ(dilation(1, 10), 4000);
  EXPECT_GT(dilation(2, 1), 400'000);
}

TEST(TrafficPlan, LetsNoCallEndBeforeItsLongestChainOfMessages) {
  SmallJob job(8, 1, FabricKind::memory);
  job.spec.cluster.nic.latency = 10 * kPicosPerMicro;
  for (int call = 0; call < 5; ++call) job.collective(Func::all_reduce, 8);
  const CollectiveTraffic row = plan_traffic(job.spec, job.workload).collectives.front();
  EXPECT_LT(row.seconds_at_least, 1e-7);
  EXPECT_DOUBLE_EQ(row.chained_seconds, 5 * 14 * 10e-6);  // a ring of 8 takes 14 steps
}

// Steps in which next to nothing but latencies take time; the first ones fill the pipe.
void expect_least_below_steps(SmallJob& job, const std::string& what) {
  constexpr int kFirst = 8;
  constexpr double kBytes = 1e-7;  // seconds, of the few bytes that are on their way meanwhile
  job.spec.cluster.nic.latency = 500 * kPicosPerMicro;
  job.spec.run.iterations = 32;
  const double least = plan_traffic(job.spec, job.workload).step_seconds_at_least;
  const Result result = job.run();
  double sum = 0;
  for (int i = kFirst; i < job.spec.run.iterations; ++i) sum += result.iterations[i].seconds;
  EXPECT_GE(sum / (job.spec.run.iterations - kFirst) + kBytes, least) << what;
}

TEST(TrafficPlan, CountsTheLatencyOfNoCallWhoseMessagesNobodyAnswers) {
  for (const Algorithm& row : registry()) {
    if (row.ends || row.func == Func::send_recv) continue;
    for (const int ranks : {2, 3, 6})
      for (const std::uint64_t count : {1, 64}) {
        // A member whose fold goes back in halves ends before the longest chain does.
        if (row.library == "openmpi-4.1" && row.name == "rabenseifner" &&
            !std::has_single_bit(static_cast<unsigned>(ranks)))
          continue;
        SmallJob job(ranks, 1, FabricKind::virtual_time);
        job.spec.collectives.library = row.library;
        job.spec.collectives.algorithm(row.func) = row.name;
        std::vector<std::uint64_t> counts(counts_needed(row.func, ranks));
        for (std::size_t i = 0; i < counts.size(); i += count == 1 ? 2 : 1) counts[i] = count;
        if (is_ragged(row.func))
          job.collective(row.func, std::make_shared<const std::vector<std::uint64_t>>(counts));
        else
          job.collective(row.func, count, DataType::float32,
                         (row.func == Func::broadcast || row.func == Func::reduce) ? ranks / 2 : 0);
        try {
          expect_least_below_steps(job, std::string(row.library) + " " +
                                            std::string(name_of(row.func)) + " " +
                                            std::string(row.name) + " " + std::to_string(ranks));
        } catch (const Error&) {
          // The algorithm serves other numbers of ranks.
        }
      }
  }
}

Op transfer(Op::Kind kind, int peer) {
  Op op;
  op.kind = kind;
  op.func = Func::send_recv;
  op.peer = peer;
  op.count = 1;
  op.dtype = DataType::float32;
  return op;
}

TEST(TrafficPlan, CountsTheLatencyOfTransfersThatAreAnswered) {
  for (const bool answered : {false, true}) {
    SmallJob job(2, 1, FabricKind::virtual_time);
    job.workload.roles.push_back(job.workload.roles[0]);
    job.workload.role_of = {0, 1};
    OpList& first = job.workload.roles[0].iterations[0].streams[0];
    OpList& second = job.workload.roles[1].iterations[0].streams[0];
    first.push_back(transfer(Op::Kind::send, 1));
    second.push_back(transfer(Op::Kind::recv, -1));
    if (answered) {
      second.push_back(transfer(Op::Kind::send, -1));
      first.push_back(transfer(Op::Kind::recv, 1));
    }
    expect_least_below_steps(job, answered ? "answered" : "one way");
    EXPECT_EQ(plan_traffic(job.spec, job.workload).latency_seconds, answered ? 500e-6 : 0);
  }
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
