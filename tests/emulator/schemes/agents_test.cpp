// Schemes with agents in the engine: real sums on every fabric, the ledger's counts, helpers beside
// ranks and on servers, losses, and calls that do not fit.
#include <gtest/gtest.h>

#include "collectives/routing.h"
#include "profiles/error.h"
#include "tests/emulator/plugins.h"
#include "tests/emulator/support.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

SmallJob agents_job(const std::string& scheme, FabricKind kind, int nodes = 3, int gpus = 2) {
  SmallJob job(nodes, gpus, kind);
  job.spec.collectives.own = testing::load_plugins({GHOSTRANK_AGENTS_PLUGIN});
  job.spec.collectives.algorithm(Func::all_reduce) = "test/" + scheme;
  job.spec.cluster.nic = {100e9, 5 * kPicosPerMicro};
  job.spec.cluster.servers.count = 2;
  job.spec.cluster.servers.nic = {200e9, 3 * kPicosPerMicro};
  job.spec.run.iterations = 3;
  return job;
}

std::string plan_text(const SmallJob& job) {
  Result planned;
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  planned.pairs = plan.pairs;
  planned.intra_node_bytes_per_iteration = static_cast<double>(plan.intra_bytes);
  planned.intra_node_messages_per_iteration = static_cast<double>(plan.intra_messages);
  return testing::ledger_text(planned);
}

TEST(Agents, SumRealDataAndSendWhatThePlanSays) {
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time}) {
    for (const char* scheme : {"at-server", "in-packets", "announced"}) {
      for (const DataType type : {DataType::int32, DataType::float32, DataType::bfloat16}) {
        SCOPED_TRACE(scheme);
        SmallJob job = agents_job(scheme, kind);
        job.spec.run.verify = true;
        job.spec.run.shards = 2;
        job.collective(Func::all_reduce, 1001, type).compute(kPicosPerMicro);
        job.collective(Func::all_reduce, 1, type).collective(Func::broadcast, 50, type, 1);
        const Result result = job.run();
        EXPECT_EQ(result.interrupted, "");
        EXPECT_EQ(result.verify->checked_elements, 3u * 6u * (1001u + 1u + 50u));
        EXPECT_EQ(result.verify->wrong_elements, 0u);
        if (std::string(scheme) != "in-packets" || kind == FabricKind::virtual_time) {
          EXPECT_EQ(testing::ledger_text(result), plan_text(job));  // else late timers retransmit
        }
      }
    }
  }
}

// Four nodes of one rank. Notes that arrive together queue at the server's NIC and processor.
TEST(Agents, TakeTheTimeOfTheirLinksAndProcessors) {
  SmallJob job = agents_job("at-server", FabricKind::virtual_time, 4, 1);
  job.spec.run.iterations = 1;
  job.collective(Func::all_reduce, 1'000'000);
  const double bytes = 4e6 + 16, out = bytes * 8 / 100e9, in = bytes * 8 / 200e9;
  const double latency = 4e-6, add = 4e6 * 50e-12;
  // The first note arrives after its rank's egress. Adding one takes longer than the next one's
  // ingress. The sum leaves once for all ranks, and a rank's NIC is slower than the server's.
  ASSERT_GT(add, in);
  const double expected = out + latency + 4 * add + out + latency;
  EXPECT_NEAR(job.run().iterations.at(0).seconds, expected, expected * 1e-3);
}

// The server answers eight ranks with one copy, which takes its NIC once. The plan's lower bound
// must not exceed the time played, nor fall below the time of the ranks' own sends.
TEST(Agents, TakeNoLessThanThePlanSays) {
  SmallJob job = agents_job("at-server", FabricKind::virtual_time, 8, 1);
  job.spec.run.iterations = 1;
  job.spec.cluster.servers.nic.rate_bps = 0;
  job.collective(Func::all_reduce, 1'000'000);
  const double least = plan_traffic(job.spec, job.workload).step_seconds_at_least;
  EXPECT_LE(least, job.run().iterations.at(0).seconds);
  EXPECT_GE(least, 4e6 * 8 / 100e9);
}

TEST(Agents, FallAlikeForEveryNumberOfShards) {
  for (const double loss : {0.0, 0.05}) {
    SmallJob job = agents_job("in-packets", FabricKind::virtual_time, 8, 1);
    job.spec.fabric.packets.loss = loss;
    job.spec.fabric.packets.duplicates = loss;
    job.spec.fabric.packets.reordering = loss;
    job.spec.run.verify = true;
    job.compute(kPicosPerMicro).collective(Func::all_reduce, 10'000);
    testing::expect_alike_with_shards(job, {2, 3, 5});
  }
}

TEST(Agents, SurviveLossesMadeOnPurpose) {
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time}) {
    SmallJob job = agents_job("in-packets", kind);
    job.spec.run.verify = true;
    job.spec.dilation = kind == FabricKind::memory ? 20 : 0;
    job.spec.fabric.packets = {0.1, 0.05, 0.2, 1500};
    job.spec.run.stall_timeout_s = 30;  // a machine may hold a run up for five
    job.collective(Func::all_reduce, 30'000).collective(Func::all_reduce, 500);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    EXPECT_EQ(result.verify->checked_elements, 3u * 6u * 30'500u);
    EXPECT_GT(result.messages_per_iteration, plan_traffic(job.spec, job.workload).wire_messages);
  }
}

// Timers fire, packets leave, and come, for ever.
TEST(Agents, ThatOnlySendAgainEndTheRunWithTheReasonAfterTheTimeOfAStall) {
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time}) {
    for (const bool lost : {true, false}) {
      for (const int shards : {1, 3}) {
        SCOPED_TRACE((kind == FabricKind::memory ? "memory " : "virtual ") +
                     std::to_string(shards) + (lost ? " lost" : " unheard"));
        SmallJob job = agents_job(lost ? "in-packets" : "deaf", kind, 3, 1);
        job.spec.run.stall_timeout_s = 0.3;
        job.spec.run.shards = shards;
        if (lost) job.spec.fabric.packets.loss = 1;  // more than a job may ask for
        job.collective(Func::all_reduce, 78 * 256).compute(kPicosPerMicro);
        const Result result = job.run();
        EXPECT_EQ(result.iterations.size(), 0u);
        EXPECT_NE(result.interrupted.find("stalled for "), std::string::npos) << result.interrupted;
        EXPECT_NE(result.interrupted.find("on host 0 in allreduce #0 'op' of group all (" +
                                          std::string(lost ? "in-packets" : "deaf") +
                                          ") waits for its agents"),
                  std::string::npos)
            << result.interrupted;
      }
    }
  }
}

// Of ten packets nine are lost: the last blocks of a call are sent some hundred times.
TEST(Agents, MaySendAgainForAsLongAsTheyGetOn) {
  SmallJob job = agents_job("in-packets", FabricKind::virtual_time, 3, 1);
  job.spec.run.iterations = 40;
  job.spec.run.stall_timeout_s = 0.4;
  job.spec.fabric.packets.loss = 0.9;
  job.collective(Func::all_reduce, 78 * 256);
  for (const int shards : {1, 3}) {
    job.spec.run.shards = shards;
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    ASSERT_EQ(result.iterations.size(), 40u);
    double whole = 0;
    for (const IterationReport& i : result.iterations) whole += i.seconds;
    EXPECT_GT(whole, 3 * job.spec.run.stall_timeout_s);
  }
}

// Two ranks send again and again until the third one has computed, too.
TEST(Agents, MaySendAgainForAsLongAsSomebodyComputes) {
  constexpr Picoseconds kLong = 1200 * kPicosPerMilli;
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time}) {
    for (const int shards : {1, 3}) {
      SCOPED_TRACE((kind == FabricKind::memory ? "memory " : "virtual ") + std::to_string(shards));
      SmallJob job = agents_job("in-packets", kind, 3, 1);
      job.spec.run.iterations = 1;
      job.spec.run.stall_timeout_s = 1;  // a busy machine may stop it for half of that
      job.spec.run.shards = shards;
      job.spec.dilation = kind == FabricKind::memory ? 1 : 0;
      job.collective(Func::all_reduce, 1000);
      SmallJob late(3, 1, kind);
      late.compute(kLong).collective(Func::all_reduce, 1000);
      job.workload.roles.push_back(late.workload.roles[0]);
      job.workload.role_of[WorldRank(2)] = 1;
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      ASSERT_EQ(result.iterations.size(), 1u);
      EXPECT_GE(result.iterations[0].seconds, 1.2);
      EXPECT_TRUE(result.stalls.empty());
    }
  }
}

// Each node is on its own leaf: the server's answer to all ranks goes up once and down to each
// leaf.
TEST(Agents, TellManyWithOneCopyOnTheLinksThatAreCommon) {
  SmallJob job = agents_job("at-server", FabricKind::virtual_time, 4, 1);
  job.spec.cluster.servers.count = 1;
  job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
  job.spec.cluster.topology.leaves = 5;
  job.spec.cluster.topology.spines = 1;
  job.collective(Func::all_reduce, 1000);
  const Result result = job.run();
  ASSERT_TRUE(result.network);
  EXPECT_EQ(result.network->tiers[1].bytes, result.wire_bytes_per_iteration);
  EXPECT_EQ(result.network->tiers[0].bytes, result.wire_bytes_per_iteration * 5 / 8);
  EXPECT_EQ(result.network->tiers[0].messages, 5);
}

TEST(Agents, OverLinksAreAlikeForEveryNumberOfShards) {
  for (const char* scheme : {"at-server", "in-packets"}) {
    for (const Routing& routing : routings()) {
      SCOPED_TRACE(std::string(scheme) + ", " + std::string(routing.name));
      SmallJob job = agents_job(scheme, FabricKind::virtual_time, 6, 1);
      job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
      job.spec.cluster.topology.leaves = 4;
      job.spec.cluster.topology.spines = 3;
      job.spec.cluster.topology.oversubscription = 3;
      job.spec.cluster.topology.routing = &routing;
      job.spec.fabric.packets.reordering = 0.1;
      job.spec.run.verify = true;
      job.collective(Func::all_reduce, 3000).collective(Func::all_reduce, 3000);
      EXPECT_EQ(job.run().verify->wrong_elements, 0u);
      testing::expect_alike_with_shards(job, {3});
    }
  }
}

TEST(Agents, ServeFromBesideTheGpus) {
  SmallJob job = agents_job("in-packets", FabricKind::virtual_time);
  job.spec.cluster.servers.colocated = true;
  job.spec.run.verify = true;
  job.collective(Func::all_reduce, 5000);
  const Result result = job.run();
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  EXPECT_EQ(testing::ledger_text(result), plan_text(job));
  EXPECT_GT(result.intra_node_bytes_per_iteration, 0);
}

TEST(Agents, ServeSeveralCommunicators) {
  SmallJob job = agents_job("at-server", FabricKind::memory, 4, 2);
  job.workload.groups.clear();
  for (const int half : {0, 1})
    job.workload.groups.push_back({0, world_ranks({half, 2 + half, 4 + half, 6 + half})});
  job.spec.run.verify = true;
  job.collective(Func::all_reduce, 700);
  const Result result = job.run();
  EXPECT_EQ(result.verify->checked_elements, 3u * 8u * 700u);
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  EXPECT_EQ(testing::ledger_text(result), plan_text(job));
}

std::string error_of(const SmallJob& job) {
  try {
    job.run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Agents, AreRefusedWithAReason) {
  SmallJob job = agents_job("at-server", FabricKind::memory);
  job.collective(Func::all_reduce, 10, DataType::uint8);
  EXPECT_NE(error_of(job).find("bytes cannot be added up"), std::string::npos) << error_of(job);
  job = agents_job("at-server", FabricKind::memory);
  job.spec.cluster.servers.count = 0;
  job.collective(Func::all_reduce, 10);
  EXPECT_NE(error_of(job).find("add  servers: {count: 1}"), std::string::npos) << error_of(job);
}

TEST(Agents, SendNoPacketThatIsTooLarge) {
  SmallJob job = agents_job("in-packets", FabricKind::virtual_time);
  job.spec.fabric.packets.mtu = 576;
  job.collective(Func::all_reduce, 1000);
  EXPECT_NE(job.run().interrupted.find("fabric.packets.mtu (576)"), std::string::npos);
}

}  // namespace
}  // namespace ghostrank
