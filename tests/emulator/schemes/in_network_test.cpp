// Schemes in the network, in virtual time: how long their calls take against the bounds that follow
// from bytes on the wire, for one rail and for several, for one level of switches and for two.
#include <algorithm>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/emulator/schemes/scale.h"
#include "tests/emulator/support.h"
#include "tests/one_of.h"

namespace ghostrank {
namespace {

using test::one_of;
using testing::kSwitchedNicRate;
using testing::SmallJob;

constexpr std::uint64_t kPackets = 16'000;
constexpr double kFull = (1024 + 10) * 8 / kSwitchedNicRate,
                 kFullOfOne = (1024 + 12) * 8 / kSwitchedNicRate,
                 kCredit = 12 * 8 / kSwitchedNicRate;

SmallJob job_of(int nodes, int gpus, const char* scheme = "switchml") {
  SmallJob job(nodes, gpus, FabricKind::virtual_time);
  for (const Func func :
       {Func::all_reduce, Func::reduce_scatter, Func::all_gather, Func::broadcast, Func::reduce})
    if (func == Func::all_reduce || std::string(scheme) != "sharp")
      job.spec.collectives.algorithm(func) = scheme;
  job.spec.cluster.nic = {kSwitchedNicRate, 2 * kPicosPerMicro};
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

double uninterrupted_seconds(const SmallJob& job) {
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  return result.iterations.at(0).seconds;
}

double ring_seconds(SmallJob job, Func func) {
  job.spec.collectives.algorithm(func) = "ring";
  job.spec.collectives.slice_bytes = 64 << 10;
  return uninterrupted_seconds(job);
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
    const double seconds = uninterrupted_seconds(job), bound = kPackets * kFull;
    expect_within(seconds, bound, 0.01, std::to_string(nodes));
    const double ratio = 2.0 * (nodes - 1) / nodes * 1024 / 1034;
    EXPECT_NEAR(ring_seconds(job, Func::all_reduce) / seconds / ratio, 1, 0.01) << nodes;
  }
}

// Links of a nanosecond, so that a ring of a thousand ranks, too, takes the time of its bytes
// alone.
TEST(InTheNetwork, TwoLevelsOfSwitchesAreAsFast) {
  for (const int nodes : {64, 1024}) {
    const std::uint64_t packets = nodes == 64 ? kPackets / 4 : kPackets / 16;
    SmallJob job = job_of(nodes, 1);
    job.spec.cluster.nic.latency = kPicosPerMicro / 1000;
    job.collective(Func::all_reduce, packets * 256, DataType::int32);
    const double seconds = uninterrupted_seconds(job);
    expect_within(seconds, static_cast<double>(packets) * kFull, 0.01, std::to_string(nodes));
    const double ratio = 2.0 * (nodes - 1) / nodes * 1024 / 1034;
    EXPECT_NEAR(ring_seconds(job, Func::all_reduce) / seconds / ratio, 1, 0.01) << nodes;
  }
}

// 64 GPUs on 8 nodes are 8 workers on each of 8 rails; each rail carries an eighth.
TEST(InTheNetwork, RailsShareATensorThatTheNodesHaveSummed) {
  SmallJob job = job_of(8, 8);
  job.spec.cluster.intra_node.rate_bps = 100 * kSwitchedNicRate;
  job.collective(Func::all_reduce, kPackets * 256, DataType::int32);
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  EXPECT_EQ(plan.wire_messages, 2 * 64 * kPackets / 8);
  expect_within(uninterrupted_seconds(job), kPackets / 8 * kFull, 0.01, "8 rails");
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
    expect_within(uninterrupted_seconds(job), c.bound, 0.01, std::string(name_of(c.func)));
  }
}

// What goes up and what comes down pass a NIC at the same time.
TEST(InTheNetwork, APlanCountsTheBusierDirectionOfACall) {
  for (const char* scheme : {"switchml", "sharp"})
    for (const int nodes : {4, 40}) {
      SmallJob job = job_of(nodes, 1, scheme);
      job.collective(Func::all_reduce, kPackets * 256, DataType::int32);
      const TrafficPlan plan = plan_traffic(job.spec, job.workload);
      expect_within(uninterrupted_seconds(job), plan.collectives.front().seconds_at_least, 0.03,
                    scheme);
    }
}

// What a distributed optimizer and FSDP gain: the reduce-scatter of one bucket fills the way up
// while the all-gather of another fills the way down. Rings of both need each way twice.
TEST(InTheNetwork, AReduceScatterAndAnAllGatherShareALinkInBothDirections) {
  constexpr int kNodes = 8;
  SmallJob job = job_of(kNodes, 1);
  // Enough for a round trip; more packets would only wait, at the start each call for the other's.
  job.spec.collectives.in_switch.slots = 64;
  job.collective(Func::reduce_scatter, kPackets * 256 / kNodes, DataType::int32);
  beside(job, Func::all_gather, kPackets * 256 / kNodes);
  const double parts = kPackets * (kNodes - 1.0) / kNodes, part = kPackets * 1.0 / kNodes;
  // Up: all elements of the one, a part of the other and credits; down likewise.
  const double up = kPackets * kFullOfOne + part * kFullOfOne + parts * kCredit;
  const double down = part * kFullOfOne + parts * kCredit + parts * kFullOfOne + part * kCredit;
  expect_within(uninterrupted_seconds(job), std::max(up, down), 0.01, "both");
  SmallJob rings = job;
  rings.spec.collectives.algorithm(Func::all_gather) = "ring";
  const double ring = ring_seconds(rings, Func::reduce_scatter);
  EXPECT_NEAR(ring / (2 * parts * 1024 * 8 / kSwitchedNicRate), 1, 0.02);
  EXPECT_GT(ring / uninterrupted_seconds(job), 1.5);
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
    expect_within(uninterrupted_seconds(job), communicators * kNodes * 2000 / 1e6, 0.01,
                  std::to_string(communicators));
  }
  SmallJob job(kNodes, 1, FabricKind::virtual_time);
  job.spec.collectives.algorithm(Func::all_reduce) = "omnireduce_switch";
  job.spec.cluster.nic = {kSwitchedNicRate, 2 * kPicosPerMicro};
  job.spec.collectives.in_switch.packet_rate = 1e6;
  job.collective(Func::all_reduce, 2000 * 256, DataType::int32, 0, 1);
  expect_within(uninterrupted_seconds(job), kNodes * 2000 / 1e6, 0.01, "omnireduce_switch");
}

// The copies of a broadcast pass a link between the leaves once, and the plan counts them so.
TEST(InTheNetwork, CopiesTakeALinkOnce) {
  SmallJob job = job_of(8, 1);
  job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
  job.spec.cluster.topology.leaves = 2;
  job.spec.cluster.topology.spines = 1;
  job.spec.cluster.topology.oversubscription = 4;
  job.collective(Func::broadcast, 1'024'000, DataType::int32);
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  const Result result = job.run();
  expect_within(result.iterations[0].seconds, plan.step_seconds_at_least, 0.05, "step");
  ASSERT_TRUE(plan.network && result.network);
  ASSERT_EQ(plan.network->tiers.size(), result.network->tiers.size());
  for (std::size_t i = 0; i < plan.network->tiers.size(); ++i)
    EXPECT_EQ(plan.network->tiers[i].bytes, result.network->tiers[i].bytes) << i;
}

// A switch has one processor, however many cores servers have.
TEST(InTheNetwork, ASwitchAtItsPacketRateIsBusy) {
  SmallJob job = job_of(4, 1);
  job.spec.cluster.servers.cores = 8;
  job.spec.collectives.in_switch.packet_rate = 1e6;
  job.collective(Func::all_reduce, 2000 * 256, DataType::int32);
  const Result result = job.run();
  ASSERT_EQ(result.servers.size(), 1u);
  EXPECT_NEAR(result.servers[0].busy, 1, 0.02);
}

// So slow that ranks send again before it has answered: it has packets left when they have all
// sums.
TEST(InTheNetwork, ASwitchIsNeverBusyForMoreThanItsTime) {
  SmallJob job = job_of(4, 1);
  job.spec.collectives.in_switch.packet_rate = 1e5;
  job.spec.collectives.in_switch.timeout_ps = 2 * kPicosPerMilli;
  job.collective(Func::all_reduce, 200 * 256, DataType::int32);
  const Result result = job.run();
  ASSERT_EQ(result.servers.size(), 1u);
  EXPECT_LE(result.servers[0].busy, 1);
  EXPECT_GT(result.servers[0].busy, 0.98);
}

// By messages of 32 KiB with a header of 16 bytes: up, then down.
TEST(InTheNetwork, SharpTakesOneTensorAndARingWhereItHasNoTree) {
  constexpr std::uint64_t kMessages = 500;
  constexpr double kMessage = (32'768 + 16) * 8 / kSwitchedNicRate;
  for (const int nodes : {4, 8, 40}) {
    SmallJob job = job_of(nodes, 1, "sharp");
    job.collective(Func::all_reduce, kMessages * 8192, DataType::float32);
    expect_within(uninterrupted_seconds(job), kMessages * kMessage, 0.03, std::to_string(nodes));
    if (nodes == 40) continue;
    job.spec.collectives.in_switch.trees = 0;
    expect_within(uninterrupted_seconds(job), 2 * (nodes - 1.0) / nodes * kMessages * kMessage,
                  0.03, std::to_string(nodes) + " around a ring");
  }
}

// Its two switches near the first ranks of its racks are two, though one rack of nodes has both.
TEST(InTheNetwork, OneCommunicatorsSwitchesAreSeveralWhereNodesAreInAnotherOrder) {
  SmallJob job = job_of(64, 1, "sharp");
  job.collective(Func::all_reduce, 500 * 8192, DataType::float32);
  const double in_order = uninterrupted_seconds(job);
  std::vector<WorldRank>& ranks = job.workload.groups[0].members;
  std::rotate(ranks.begin() + 16, ranks.begin() + 40, ranks.begin() + 56);
  EXPECT_NEAR(uninterrupted_seconds(job) / in_order, 1, 1e-3);
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

// ---- ATP ----

constexpr std::uint64_t kInAtp = 62;                                 // elements of a packet
constexpr double kAtpPacket = (26 + 4 * 62) * 8 / kSwitchedNicRate;  // seconds at a NIC

SmallJob atp_job(int nodes, int window, int aggregators, int servers = 1) {
  SmallJob job = job_of(nodes, 1, "atp");
  job.spec.cluster.servers.count = servers;
  job.spec.cluster.servers.nic = job.spec.cluster.nic;
  job.spec.collectives.in_switch = {.slots = window, .timeout_ps = 500'000'000};
  job.spec.collectives.in_switch.memory_slots = aggregators;
  return job;
}

// h: the share of packets with an aggregator. The server receives h + n (1-h) times the packets of
// a worker.
TEST(InTheNetwork, AtpsServerReceivesWhatTheSwitchCouldNotAddUp) {
  constexpr int kNodes = 4, kWindow = 256;
  constexpr std::uint64_t kAll = kWindow * 40;
  for (const double h : {1.0, 0.5, 0.0}) {
    SmallJob job = atp_job(kNodes, kWindow, static_cast<int>(h * kWindow));
    job.collective(Func::all_reduce, kAll * kInAtp, DataType::int32);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    double at_server = 0;
    for (const PairTraffic& p : result.pairs)
      if (p.target_nic == Nic(kNodes)) at_server += p.messages;
    const double share = h + kNodes * (1 - h);
    EXPECT_NEAR(at_server / (share * kAll), 1, 0.02) << h;
    expect_within(result.iterations[0].seconds, share * kAll * kAtpPacket, 0.03, std::to_string(h));
    EXPECT_EQ(plan_traffic(job.spec, job.workload).wire_messages,
              static_cast<std::uint64_t>(at_server) + kAll + 2 * kNodes * kAll);
  }
}

// Calls smaller than a window begin at one slot after the other: a part of them, as of the slots,
// finds an aggregator.
TEST(InTheNetwork, AtpsSmallCallsFindAggregatorsAsOftenAsLargeOnes) {
  constexpr int kNodes = 4, kWindow = 64;
  for (const int aggregators : {8, 16, 48})
    for (const std::uint64_t packets : {4, 24, 40}) {
      SmallJob job = atp_job(kNodes, kWindow, aggregators);
      for (int calls = 0; calls < kWindow; ++calls)  // each slot begins as many packets
        job.collective(Func::all_reduce, packets * kInAtp, DataType::int32);
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      const TrafficPlan plan = plan_traffic(job.spec, job.workload);
      double messages = 0, bytes = 0;
      for (const PairTraffic& p : result.pairs) messages += p.messages, bytes += p.bytes;
      // The plan has whole messages and bytes for each call.
      EXPECT_NEAR(static_cast<double>(plan.wire_messages), messages, 0.5 * kWindow)
          << aggregators << ", " << packets;
      EXPECT_NEAR(static_cast<double>(plan.wire_bytes), bytes, 0.5 * kWindow)
          << aggregators << ", " << packets;
    }
}

TEST(InTheNetwork, AtpIsRightAtEveryShareWithLosses) {
  for (const int aggregators : {64, 32, 0})
    for (const DataType type : {DataType::int32, DataType::float32, DataType::bfloat16}) {
      SmallJob job = atp_job(4, 64, aggregators);
      job.spec.run.verify = true;
      job.spec.fabric.packets.loss = 0.01;
      job.collective(Func::all_reduce, 20'000, type);
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      EXPECT_EQ(result.verify->wrong_elements, 0u) << aggregators << " " << name_of(type);
    }
}

// Workers that find no aggregator send the server packets of one index in turn.
TEST(InTheNetwork, AtpEndsWithLossesForEverySeed) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    SmallJob job = job_of(8, 1, "atp");
    job.spec.cluster.nic.rate_bps = 10 * kSwitchedNicRate;
    job.spec.cluster.servers.count = 1;
    job.spec.cluster.servers.nic = job.spec.cluster.nic;
    job.spec.fabric.packets.loss = 0.01;
    job.spec.run.seed = seed;
    job.collective(Func::all_reduce, 262'144, DataType::float32);
    EXPECT_EQ(job.run().interrupted, "") << seed;
  }
}

TEST(InTheNetwork, TwoJobsShareAtpsAggregatorsFairly) {
  SmallJob job = atp_job(4, 64, 64, 2);
  job.spec.run.verify = true;
  job.collective(Func::all_reduce, 2'000 * kInAtp, DataType::int32);
  beside(job, Func::all_reduce, 2'000 * kInAtp);
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  double sum = 0, squares = 0;
  ASSERT_EQ(result.collectives.size(), 2u);
  for (const CollectiveReport& c : result.collectives) {
    const double rate = 1 / c.seconds_median;
    sum += rate;
    squares += rate * rate;
  }
  EXPECT_GE(sum * sum / (2 * squares), 0.95);  // Jain's index
}

// The servers of four rails are on as many machines as there are, evenly.
TEST(InTheNetwork, AtpsServersUseAllMachines) {
  constexpr int kNodes = 4, kRails = 4;
  constexpr std::uint64_t kAll = 256 * 10;  // packets of a rail
  for (const bool colocated : {false, true})
    for (const int servers : {1, 2, 4}) {
      SmallJob job = job_of(kNodes, kRails, "atp");
      job.spec.cluster.servers.count = servers;
      job.spec.cluster.servers.colocated = colocated;
      job.spec.cluster.servers.nic = job.spec.cluster.nic;
      job.spec.collectives.in_switch = {.slots = 256, .memory_slots = 0};
      job.collective(Func::all_reduce, kRails * kAll * kInAtp, DataType::int32);
      const Result result = job.run();
      std::set<std::string> machines;
      for (const ServerReport& server : result.servers) machines.insert(server.name);
      EXPECT_EQ(machines.size(), static_cast<std::size_t>(kRails + servers));  // and the switches
      const double each = static_cast<double>(kAll * kNodes * kRails) / servers * kAtpPacket;
      if (!colocated) expect_within(result.iterations[0].seconds, each, 0.03, "servers");
    }
}

// A core takes 2.48 us to copy a packet's elements, or to add them.
TEST(InTheNetwork, AtpsServerAddsInItsCores) {
  constexpr std::uint64_t kAll = 256 * 10;
  for (const int cores : {1, 4})
    for (const double h : {0.0, 1.0}) {
      SmallJob job = atp_job(4, 256, static_cast<int>(256 * h));
      job.spec.collectives.in_switch.timeout_ps = kPicosPerSecond;
      job.spec.cluster.servers.cores = cores;
      job.spec.cluster.servers.add_GBps = 0.1;
      job.collective(Func::all_reduce, kAll * kInAtp, DataType::int32);
      const double packets = kAll * (h + 4 * (1 - h));
      expect_within(uninterrupted_seconds(job), packets * 2.48e-6 / cores, 0.03,
                    std::to_string(cores) + " cores, " + std::to_string(h));
    }
}

TEST(InTheNetwork, AtpNeedsAServer) {
  SmallJob job = atp_job(4, 64, 64, 0);
  job.collective(Func::all_reduce, 100, DataType::int32);
  EXPECT_THROW(job.run(), std::runtime_error);
}

// ---- Whatever the scheme ----

// Any shape, scheme, function, type and misfortune. Real data is right, and one shard plays what
// three do.
TEST(InTheNetwork, RandomJobsLeaveRealDataRight) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    std::mt19937 random(seed);
    const std::string scheme =
        one_of<const char*>(random, {"switchml", "switchml", "sharp", "atp", "omnireduce_switch"});
    const bool sparse = scheme == "omnireduce_switch";
    SmallJob job =
        job_of(one_of(random, {1, 2, 3, 6, 35}), one_of(random, {1, 2, 4}), scheme.c_str());
    JobSpec& spec = job.spec;
    if (scheme == "atp") spec.cluster.nodes = std::min(spec.cluster.nodes, 32);
    if (sparse) spec.cluster.nodes = std::min(spec.cluster.nodes, 32 / spec.cluster.gpus_per_node);
    job = SmallJob(spec.cluster.nodes, spec.cluster.gpus_per_node, FabricKind::virtual_time);
    spec = job_of(spec.cluster.nodes, spec.cluster.gpus_per_node, scheme.c_str()).spec;
    if (spec.cluster.gpus_per_node > 1) spec.cluster.nics_per_node = one_of(random, {1, 2});
    spec.cluster.nic.rate_bps = one_of(random, {0.0, 1e10, 4e11});
    spec.cluster.intra_node.rate_bps = one_of(random, {0.0, 1e12});
    spec.cluster.servers.count = one_of(random, {1, 3});
    spec.cluster.servers.colocated = random() % 2 == 0;
    spec.cluster.servers.nic = spec.cluster.nic;
    InSwitch& in = spec.collectives.in_switch;
    in.slots = one_of(random, {1, 7, 64});
    in.packet_elements = one_of(random, {32, 64, 256});
    in.timeout_ps = 500'000'000;
    in.packet_rate = one_of(random, {0.0, 1e7});
    in.memory_slots = one_of(random, {64, 1'000});
    in.trees = one_of(random, {0, 1});
    in.trees_per_port = random() % 2 == 0;
    if (random() % 2 == 0)
      spec.fabric.packets = {.loss = one_of(random, {0.0, 0.01}),
                             .duplicates = one_of(random, {0.0, 0.01}),
                             .reordering = one_of(random, {0.0, 0.01})};
    spec.run.verify = true;
    spec.run.iterations = 2;
    if (sparse) spec.tensors = Sparsity{one_of(random, {0.1, 0.5}), 32, Overlap::random};
    const bool any = scheme == "switchml";
    for (int calls = 0; calls < 3; ++calls) {
      const Func func = any ? one_of(random, {Func::all_reduce, Func::reduce_scatter,
                                              Func::all_gather, Func::broadcast, Func::reduce})
                            : Func::all_reduce;
      const bool copies = func == Func::all_gather || func == Func::broadcast;
      const auto root =
          static_cast<GroupRank>(random() % static_cast<unsigned>(job.workload.ranks));
      const DataType type =
          copies ? one_of(random, {DataType::uint8, DataType::int64, DataType::float16})
                 : one_of(random, {DataType::int32, DataType::float32, DataType::bfloat16,
                                   DataType::float16});
      job.collective(func, one_of<std::uint64_t>(random, {1, 300, 2'000}),
                     sparse ? DataType::int32 : type,
                     copies || func == Func::reduce ? (func == Func::all_gather ? 0 : root) : 0,
                     sparse ? static_cast<std::uint32_t>(calls) + 1 : 0);
    }
    SCOPED_TRACE("job " + std::to_string(seed) + ": " + scheme + ", " +
                 std::to_string(spec.cluster.nodes) + " x " +
                 std::to_string(spec.cluster.gpus_per_node));
    const Result one = job.run();
    ASSERT_EQ(one.interrupted, "");
    EXPECT_GT(one.verify->checked_elements, 0u);
    ASSERT_EQ(one.verify->wrong_elements, 0u);
    spec.run.shards = 3;
    const Result three = job.run();
    EXPECT_EQ(one.iterations[1].seconds, three.iterations[1].seconds);
    EXPECT_EQ(testing::ledger_text(one), testing::ledger_text(three));
  }
}

TEST(InTheNetwork, RailsRacksAndFunctionsAreTheSameForEveryNumberOfShards) {
  SmallJob job = job_of(40, 2);
  job.spec.cluster.intra_node.rate_bps = 10 * kSwitchedNicRate;
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

// Two sets of every slot of a switch of SwitchML: a sum, 4 bytes of workers' marks, 1 that counts
// the missing, two exponents and the number of the round. A failed switch holds it once.
TEST(Schemes, ReportTheMemoryThatServersAndSwitchesHeld) {
  const auto held = [](const char* scheme, bool fails = false) {
    SmallJob job(4, 1, FabricKind::virtual_time);
    job.spec.collectives.algorithm(Func::all_reduce) = scheme;
    job.spec.cluster.nic = {kSwitchedNicRate, 2 * kPicosPerMicro};
    job.spec.cluster.servers.count = 1;
    job.spec.cluster.servers.nic = job.spec.cluster.nic;
    job.spec.collectives.in_switch = {.slots = 16, .packet_elements = 64};
    job.spec.collectives.at_servers.partition_bytes = 4096;
    if (fails) job.spec.network_switch.fails_at = {20 * kPicosPerMicro};
    job.collective(Func::all_reduce, 10'000, DataType::int32, 0, 1);
    std::uint64_t bytes = 0;
    for (const ServerReport& server : job.run().servers) bytes += server.memory_bytes;
    return bytes;
  };
  EXPECT_EQ(held("switchml"), 2u * 16 * (4 * 64 + 11));
  EXPECT_EQ(held("switchml", true), held("switchml"));
  EXPECT_EQ(held("omnireduce_switch"), 2u * 16 * (4 * 64 + 1));
  EXPECT_EQ(held("parameter_server"), 2u * 4 * 10'000);
  for (const char* scheme : {"sharp", "atp", "omnireduce", "byteps", "phub"})
    EXPECT_GT(held(scheme), 0u) << scheme;
}

}  // namespace
}  // namespace ghostrank
