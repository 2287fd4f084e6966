// Schemes in the network, in virtual time: how long their calls take against the bounds that follow
// from bytes on the wire, for one rail and for several, for one level of switches and for two.
#include <gtest/gtest.h>

#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

constexpr double kRate = 10e9;  // bits per second
constexpr std::uint64_t kPackets = 16'000;
constexpr double kFull = (1024 + 10) * 8 / kRate, kFullOfOne = (1024 + 12) * 8 / kRate,
                 kCredit = 12 * 8 / kRate;

SmallJob job_of(int nodes, int gpus, const char* scheme = "switchml") {
  SmallJob job(nodes, gpus, FabricKind::virtual_time);
  for (const Func func :
       {Func::all_reduce, Func::reduce_scatter, Func::all_gather, Func::broadcast, Func::reduce})
    if (func == Func::all_reduce || std::string(scheme) != "sharp")
      job.spec.collectives.algorithm(func) = scheme;
  job.spec.cluster.nic = {kRate, 2 * kPicosPerMicro};
  return job;
}

// Plays the collective at the same time as the job's, in a communicator of its own.
void beside(SmallJob& job, Func func, std::uint64_t count) {
  job.workload.group_names.push_back("also");
  job.workload.groups.push_back({1, world_ranks(job.workload.ranks)});
  Program& program = job.program();
  program.stream_names = {"compute", "more"};
  program.streams.resize(2);
  Op op;
  op.kind = Op::Kind::collective;
  op.func = func;
  op.count = count;
  op.dtype = DataType::int32;
  op.group = 1;
  program.streams[1].push_back(op);
}

double seconds_of(const SmallJob& job) {
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  return result.iterations.at(0).seconds;
}

double ring_seconds(SmallJob job, Func func) {
  job.spec.collectives.algorithm(func) = "ring";
  job.spec.collectives.slice_bytes = 64 << 10;
  return seconds_of(job);
}

void expect_within(double seconds, double bound, double share, const std::string& what) {
  EXPECT_GE(seconds, bound) << what;
  EXPECT_LE(seconds, bound * (1 + share)) << what;
}

// A ring over SwitchML is 2(n-1)/n, less SwitchML's headers.
TEST(InTheNetwork, AnAllReduceTakesOneTensorAndTheRingTwiceThatLessOnePart) {
  for (const int nodes : {4, 8, 16, 32}) {
    SmallJob job = job_of(nodes, 1);
    job.collective(Func::all_reduce, kPackets * 256, DataType::int32);
    const double seconds = seconds_of(job), bound = kPackets * kFull;
    expect_within(seconds, bound, 0.01, std::to_string(nodes));
    const double ratio = 2.0 * (nodes - 1) / nodes * 1024 / 1034;
    EXPECT_NEAR(ring_seconds(job, Func::all_reduce) / seconds / ratio, 1, 0.01) << nodes;
  }
}

TEST(InTheNetwork, TwoLevelsOfSwitchesAreAsFast) {
  SmallJob job = job_of(64, 1);
  job.collective(Func::all_reduce, kPackets / 4 * 256, DataType::int32);
  expect_within(seconds_of(job), kPackets / 4 * kFull, 0.01, "64 workers");
}

// 64 GPUs on 8 nodes are 8 workers on each of 8 rails; each rail carries an eighth.
TEST(InTheNetwork, RailsShareATensorThatTheNodesHaveSummed) {
  SmallJob job = job_of(8, 8);
  job.spec.cluster.intra_node.rate_bps = 100 * kRate;
  job.collective(Func::all_reduce, kPackets * 256, DataType::int32);
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  EXPECT_EQ(plan.wire_messages, 2 * 64 * kPackets / 8);
  expect_within(seconds_of(job), kPackets / 8 * kFull, 0.01, "8 rails");
}

TEST(InTheNetwork, EachFunctionTakesTheTimeOfItsBusierDirection) {
  constexpr int kNodes = 8;
  struct Case {
    Func func;
    std::uint64_t count;
    double bound;
  };
  const double parts = kPackets * (kNodes - 1.0) / kNodes, part = kPackets * 1.0 / kNodes;
  for (const Case& c :
       {Case{Func::reduce_scatter, kPackets * 256 / kNodes, kPackets * kFullOfOne},
        Case{Func::all_gather, kPackets * 256 / kNodes, parts * kFullOfOne + part * kCredit},
        Case{Func::broadcast, kPackets * 256, kPackets * kFullOfOne},
        Case{Func::reduce, kPackets * 256, kPackets * kFullOfOne}}) {
    SmallJob job = job_of(kNodes, 1);
    job.collective(c.func, c.count, DataType::int32);
    expect_within(seconds_of(job), c.bound, 0.01, std::string(name_of(c.func)));
  }
}

// What a distributed optimizer and FSDP gain: the reduce-scatter of one bucket fills the way up
// while the all-gather of another fills the way down. Rings of both need each way twice.
TEST(InTheNetwork, AReduceScatterAndAnAllGatherShareALinkInBothDirections) {
  constexpr int kNodes = 8;
  SmallJob job = job_of(kNodes, 1);
  job.collective(Func::reduce_scatter, kPackets * 256 / kNodes, DataType::int32);
  beside(job, Func::all_gather, kPackets * 256 / kNodes);
  const double parts = kPackets * (kNodes - 1.0) / kNodes, part = kPackets * 1.0 / kNodes;
  // Up: all elements of the one, a part of the other and credits; down likewise.
  const double up = kPackets * kFullOfOne + part * kFullOfOne + parts * kCredit;
  const double down = part * kFullOfOne + parts * kCredit + parts * kFullOfOne + part * kCredit;
  expect_within(seconds_of(job), std::max(up, down), 0.01, "both");
  SmallJob rings = job;
  rings.spec.collectives.algorithm(Func::all_gather) = "ring";
  const double ring = ring_seconds(rings, Func::reduce_scatter);
  EXPECT_NEAR(ring / (2 * parts * 1024 * 8 / kRate), 1, 0.02);
  EXPECT_GT(ring / seconds_of(job), 1.5);
}

// A switch that takes fewer packets than its ports bring is the bottleneck, for all jobs together.
TEST(InTheNetwork, ASwitchTakesPacketsAtItsOwnRate) {
  constexpr int kNodes = 4;
  for (const int communicators : {1, 2}) {
    SmallJob job = job_of(kNodes, 1);
    job.spec.collectives.in_switch.packet_rate = 1e6;
    job.spec.collectives.in_switch.memory_slots = 512 * communicators;
    job.collective(Func::all_reduce, 2000 * 256, DataType::int32);
    if (communicators == 2) beside(job, Func::all_reduce, 2000 * 256);
    expect_within(seconds_of(job), communicators * kNodes * 2000 / 1e6, 0.01,
                  std::to_string(communicators));
  }
}

// By messages of 32 KiB with a header of 16 bytes: up, then down.
TEST(InTheNetwork, SharpTakesOneTensorAndARingWhereItHasNoTree) {
  constexpr std::uint64_t kMessages = 500;
  constexpr double kMessage = (32'768 + 16) * 8 / kRate;
  for (const int nodes : {4, 8, 40}) {
    SmallJob job = job_of(nodes, 1, "sharp");
    job.collective(Func::all_reduce, kMessages * 8192, DataType::float32);
    expect_within(seconds_of(job), kMessages * kMessage, 0.03, std::to_string(nodes));
    if (nodes == 40) continue;
    job.spec.collectives.in_switch.trees = 0;
    expect_within(seconds_of(job), 2 * (nodes - 1.0) / nodes * kMessages * kMessage, 0.03,
                  std::to_string(nodes) + " around a ring");
  }
}

// Two communicators of the same nodes ask one switch for a tree each.
TEST(InTheNetwork, OnlyTheFirstCommunicatorGetsATreeOfASwitchThatHasOne) {
  for (const int trees : {1, 2}) {
    SmallJob job = job_of(4, 1, "sharp");
    job.spec.run.verify = true;
    job.spec.collectives.in_switch.trees = trees;
    job.collective(Func::all_reduce, 50'000, DataType::int32);
    beside(job, Func::all_reduce, 50'000);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    double between_nodes = 0;  // a ring's messages go from node to node
    for (const PairTraffic& p : result.pairs)
      if (p.source_nic < Nic(4) && p.target_nic < Nic(4)) between_nodes += p.messages;
    EXPECT_EQ(between_nodes > 0, trees == 1);
  }
}

TEST(InTheNetwork, RailsRacksAndFunctionsAreTheSameForEveryNumberOfShards) {
  SmallJob job = job_of(40, 2);
  job.spec.cluster.intra_node.rate_bps = 10 * kRate;
  job.spec.collectives.in_switch.packet_rate = 50e6;
  job.collective(Func::all_reduce, 40'000, DataType::float32)
      .collective(Func::all_gather, 1'000, DataType::bfloat16)
      .collective(Func::reduce_scatter, 500, DataType::float16)
      .collective(Func::broadcast, 3'000, DataType::uint8, 7);
  testing::expect_alike_with_shards(job, {2, 4});
}

TEST(InTheNetwork, EveryFunctionLeavesRealDataRight) {
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time})
    for (const int gpus : {1, 3}) {
      SmallJob job = job_of(3, gpus);
      job.spec.fabric.kind = kind;
      job.spec.dilation = kind == FabricKind::memory ? 20 : 0;
      job.spec.run.verify = true;
      job.spec.fabric.packets.loss = 0.005;
      job.spec.collectives.in_switch.timeout_ps = 200'000'000;
      job.collective(Func::all_reduce, 5'000, DataType::float16)
          .collective(Func::reduce_scatter, 3'000, DataType::bfloat16)
          .collective(Func::all_gather, 3'000, DataType::int64)
          .collective(Func::broadcast, 9'001, DataType::uint8, 2)
          .collective(Func::reduce, 9'000, DataType::float32, 1);
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      EXPECT_EQ(result.verify->wrong_elements, 0u);
      EXPECT_GT(result.verify->checked_elements, 20'000u);
    }
}

}  // namespace
}  // namespace ghostrank
