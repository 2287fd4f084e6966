// Libraries whose data waits for its receive to be posted: gloo in virtual time against closed
// forms, and on real fabrics with real data.
//
//   L latency of a message, T time of a block on the link, W until the caller of a collective wakes
#include <gtest/gtest.h>

#include "emulator/shard/on_the_way/connections.h"
#include "tests/emulator/processes/processes.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

constexpr double kLatency = 5e-6, kWake = 20e-6, kRate = 10e9;

double seconds_of_elements(std::uint64_t count) {
  return static_cast<double>(count) * 4 * 8 / kRate;
}

// A job of gloo with a GPU per node; delay() gives a rank that begins late a role of its own.
SmallJob gloo_job(int nodes, FabricKind kind = FabricKind::virtual_time) {
  SmallJob job(nodes, 1, kind);
  job.spec.collectives.library = "gloo";
  job.spec.cluster.nic = {kRate, 5 * kPicosPerMicro};
  return job;
}

void delay(SmallJob& job, int rank, Picoseconds duration) {
  Op compute;
  compute.duration = duration;
  Role late = job.workload.roles[0];
  OpList ops{compute};
  for (const Op& op : job.program().streams[0]) ops.push_back(op);
  late.iterations[0].streams[0] = std::move(ops);
  job.workload.role_of[WorldRank(rank)] = static_cast<std::uint16_t>(job.workload.roles.size());
  job.workload.roles.push_back(std::move(late));
}

double seconds_of(const SmallJob& job) { return job.run().iterations.at(0).seconds; }

TEST(Permissions, DataLeavesWhenItsReceiveHasBeenPosted) {
  SmallJob job = gloo_job(2);
  job.collective(Func::broadcast, 100'000);
  const double block = seconds_of_elements(100'000);
  EXPECT_NEAR(seconds_of(job), kLatency + block + kLatency + kWake, 1e-9);

  delay(job, 1, 700 * kPicosPerMicro);
  EXPECT_NEAR(seconds_of(job), 700e-6 + kLatency + block + kLatency + kWake, 1e-9);
}

TEST(Permissions, ASendThatIsLateFindsItsPermissionThere) {
  SmallJob job = gloo_job(2);
  job.collective(Func::broadcast, 100'000);
  delay(job, 0, 700 * kPicosPerMicro);
  EXPECT_NEAR(seconds_of(job), 700e-6 + seconds_of_elements(100'000) + kLatency + kWake, 1e-9);
}

TEST(Permissions, RanksThatBeginTogetherExchangeTheirBlocksAtTheSameTime) {
  SmallJob job = gloo_job(2);
  const int calls = 3;
  for (int i = 0; i < calls; ++i) job.collective(Func::all_to_all, 100'000);
  const double call = kLatency + seconds_of_elements(100'000) + kLatency + kWake;
  EXPECT_NEAR(seconds_of(job), calls * call, 1e-9);
}

// Seconds per call of several calls back to back; rank 1 begins the first one 8 us late.
double with_a_late_start(Func func, std::uint64_t count) {
  SmallJob job = gloo_job(2);
  const int calls = 3;
  for (int i = 0; i < calls; ++i) job.collective(func, count);
  delay(job, 1, 8 * kPicosPerMicro);
  return (seconds_of(job) - 8e-6) / calls;
}

// Rank 1 finds rank 0's permission when it begins, so on their shared connection its data goes
// ahead of its own permission. Rank 0 then has received everything and begins the next call while
// its data is still on its way, and so on.
TEST(Permissions, RanksTakeTurnsWhenOneBeginsAfterTheOthersPermissionCame) {
  EXPECT_NEAR(with_a_late_start(Func::all_to_all, 100'000),
              2 * (seconds_of_elements(100'000) + kLatency) + kWake, 1e-9);
}

// While the second half leaves in one direction, the first one leaves in the other.
TEST(Permissions, HalvesOfAnAllGatherTakeTurnsToo) {
  EXPECT_NEAR(with_a_late_start(Func::all_gather, 100'000),
              3 * seconds_of_elements(50'000) + 2 * kLatency + kWake, 1e-9);
}

TEST(Permissions, DataForOthersDoesNotHoldThemUp) {
  // Rank 0's two blocks leave one after the other. Its permission for rank 1 waits behind the first
  // block only, not behind the second, which goes to rank 2.
  SmallJob job = gloo_job(3);
  job.collective(Func::broadcast, 100'000).collective(Func::gather, 100'000);
  const double block = seconds_of_elements(100'000);
  // Rank 1 has the broadcast at 2L+T+W, rank 2 after another T; both answer at once.
  EXPECT_NEAR(seconds_of(job), 2 * kLatency + 2 * block + kWake + block + kLatency + kWake, 1e-9);
}

// Both phases have two iterations, posted at once, with segments of half a chunk.
TEST(Permissions, ARingOfTwoPostsTwoSegmentsAhead) {
  SmallJob job = gloo_job(2);
  job.collective(Func::all_reduce, 400'000);
  const double segment = seconds_of_elements(100'000);
  EXPECT_NEAR(seconds_of(job), 2 * (2 * kLatency + 2 * segment + kWake), 1e-9);
}

TEST(Permissions, AnyNumberOfShardsPlaysTheSameRun) {
  SmallJob job = gloo_job(8);
  job.spec.run.jitter = 0.3;
  job.spec.run.iterations = 3;
  job.compute(kPicosPerMilli)
      .collective(Func::all_to_all, 30'001)
      .collective(Func::all_reduce, 200'003)
      .collective(Func::broadcast, 70'000)
      .collective(Func::barrier, 0)
      .collective(Func::all_gather, 20'000)
      .collective(Func::reduce, 90'000);
  testing::expect_alike_with_shards(job, {2, 8});
}

TEST(Permissions, AreNoMessagesOfTheLedger) {
  SmallJob job = gloo_job(4);
  job.collective(Func::all_to_all, 1000);
  const Result result = job.run();
  EXPECT_EQ(result.messages_per_iteration, 4 * 3);
  EXPECT_EQ(result.wire_bytes_per_iteration, 4 * 3 * 4000);
}

// Two processes of two ranks each, over separate or shared connections.
TEST(Permissions, TravelOverLibfabric) {
  for (const FlowKind flows : {FlowKind::nic, FlowKind::connection}) {
    const auto outcomes = testing::run_processes(2, [&](const World& world) {
      SmallJob job = gloo_job(4, FabricKind::ofi);
      job.spec.fabric.flows = flows;
      job.spec.run.verify = true;
      job.spec.run.iterations = 2;
      if (flows == FlowKind::nic) job.spec.cluster.nic.rate_bps = 0;
      job.collective(Func::all_to_all, 10'000)
          .collective(Func::all_gather, 10'000)
          .collective(Func::broadcast, 40'000)
          .collective(Func::all_reduce, 40'000)
          .collective(Func::reduce, 40'000)
          .collective(Func::barrier, 0);
      const auto control = Control::meet(world);
      const Result result = job.run(*control);
      if (world.rank == 0) {
        EXPECT_EQ(result.verify->wrong_elements, 0u);
        EXPECT_EQ(result.iterations.size(), 2u);
      }
      control->close();
      return result.interrupted;
    });
    testing::expect_all_ok(outcomes);
  }
}

TEST(Connections, AreTakenUntilWhatWasSentHasLeft) {
  Connections connections;
  connections.take({1, 0, 2}, 50, 0);
  EXPECT_EQ(connections.behind({1, 0, 2}, 20), 50);
  EXPECT_EQ(connections.behind({1, 0, 2}, 70), 70);
  for (const Connections::Key other : {Connections::Key{2, 0, 2}, {1, 1, 2}, {1, 0, 3}})
    EXPECT_EQ(connections.behind(other, 20), 20);
}

TEST(Connections, ForgetsThoseThatAreFreeAgain) {
  Connections connections;
  for (GroupRank peer = 0; peer < 100'000; ++peer) connections.take({0, 0, peer}, peer + 10, peer);
  EXPECT_LT(connections.size(), 2000u);
  EXPECT_EQ(connections.behind({0, 0, 99'999}, 0), 99'999 + 10);
}

}  // namespace
}  // namespace ghostrank
