// Virtual time against closed forms and against itself.
#include <cmath>

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

constexpr double kTolerance = 1e-3;

SmallJob one_gpu_nodes(int nodes) {
  SmallJob job(nodes, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {100e9, 5 * kPicosPerMicro};
  return job;
}

double seconds_of(const SmallJob& job) { return job.run().iterations.at(0).seconds; }

void expect_close(double measured, double expected) {
  EXPECT_NEAR(measured, expected, expected * kTolerance) << "closed form " << expected;
}

TEST(VirtualTime, RingAllReduceTakesTwoNMinusOneLatenciesAndChunks) {
  for (int n : {2, 3, 8, 33}) {
    const std::uint64_t count = static_cast<std::uint64_t>(n) * 10'000;
    SmallJob job = one_gpu_nodes(n);
    job.collective(Func::all_reduce, count);
    const double chunk = 10'000 * 4 * 8 / 100e9;
    expect_close(seconds_of(job), 2 * (n - 1) * (5e-6 + chunk));
  }
}

// A NIC at wire rate carries the headers, too; the ledger counts only the messages.
TEST(VirtualTime, FramingTakesTimeAndNoBytes) {
  for (const Framing framing : {Framing{}, Framing{1448, 90, 0}, Framing{4096, 82, 16}}) {
    SmallJob job = one_gpu_nodes(2);
    job.spec.fabric.framing = framing;
    job.collective(Func::broadcast, 1'000'000);
    const Result result = job.run();
    const double packets = framing.none() ? 0 : std::ceil(4e6 / framing.packet_payload);
    const double wire = 4e6 + packets * framing.per_packet + framing.per_message;
    expect_close(result.iterations.at(0).seconds, 5e-6 + wire * 8 / 100e9);
    EXPECT_EQ(result.wire_bytes_per_iteration, 4e6);
  }
}

// A message of 40 days, or three delays of ten, are more than the clock of a run has.
TEST(VirtualTime, EndsARunBeforeItsClockEnds) {
  for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
    for (const bool traced : {false, true}) {
      SmallJob slow = one_gpu_nodes(2);
      slow.spec.fabric.network = network;
      slow.spec.cluster.nic.rate_bps = 1e3;
      slow.collective(Func::broadcast, 108'000'000);
      SmallJob long_run = one_gpu_nodes(2);
      long_run.spec.fabric.network = network;
      for (int i = 0; i < 3; ++i) long_run.compute(10 * 86'400 * kPicosPerSecond);
      for (SmallJob* job : {&slow, &long_run}) {
        RunOptions options;
        if (traced) options.trace_ranks = {WorldRank(0)};
        const Result result = job->run(nullptr, options);
        EXPECT_NE(result.interrupted.find("26 days"), std::string::npos) << result.interrupted;
        EXPECT_TRUE(result.iterations.empty());
      }
    }
  }
}

TEST(VirtualTime, RingHalvesTakeHalfEach) {
  for (Func func : {Func::reduce_scatter, Func::all_gather}) {
    SmallJob job = one_gpu_nodes(7);
    job.collective(func, 50'000);
    expect_close(seconds_of(job), 6 * (5e-6 + 50'000 * 4 * 8 / 100e9));
  }
}

TEST(VirtualTime, RecursiveDoublingExchangesTheWholeBufferLogNTimes) {
  SmallJob job = one_gpu_nodes(16);
  job.spec.collectives.algorithm(Func::all_reduce) = "recursive_doubling";
  job.collective(Func::all_reduce, 25'000);
  expect_close(seconds_of(job), 4 * (5e-6 + 25'000 * 4 * 8 / 100e9));
}

TEST(VirtualTime, BinomialBroadcastIsBoundByItsLongestChain) {
  // The root sends to n/2, n/4, ..., one after the other through its egress. The last send's
  // receiver waits log2(n) serialisations and one latency; a relay chain of the same length waits
  // log2(n) of each.
  SmallJob job = one_gpu_nodes(2);
  job.collective(Func::broadcast, 1'000'000);
  expect_close(seconds_of(job), 5e-6 + 4e6 * 8 / 100e9);
  SmallJob four = one_gpu_nodes(4);
  four.collective(Func::broadcast, 1'000'000);
  expect_close(seconds_of(four), 2 * (5e-6 + 4e6 * 8 / 100e9));
}

TEST(VirtualTime, PairwiseAllToAllTakesNMinusOneSteps) {
  SmallJob job = one_gpu_nodes(8);
  job.collective(Func::all_to_all, 10'000);
  expect_close(seconds_of(job), 7 * (5e-6 + 10'000 * 4 * 8 / 100e9));
}

TEST(VirtualTime, BarrierTakesLogNLatencies) {
  SmallJob job = one_gpu_nodes(9);
  job.collective(Func::barrier, 0);
  expect_close(seconds_of(job), 4 * 5e-6);
}

TEST(VirtualTime, NodesOfSeveralGpusPipelineThroughNvlinkAndEveryNic) {
  // 4 nodes of 4 GPUs: four rings share the data; each crosses every node boundary through its own
  // NIC.
  SmallJob job(4, 4, FabricKind::virtual_time);
  job.spec.cluster.nic = {100e9, 5 * kPicosPerMicro};
  job.collective(Func::all_reduce, 16 * 4 * 100'000);
  const Result result = job.run();
  ASSERT_EQ(result.pairs.size(), 16u);
  const double each = 2.0 * 15 / 16 * (16 * 4 * 100'000 * 4.0) / 4;
  for (const PairTraffic& pair : result.pairs) EXPECT_DOUBLE_EQ(pair.bytes, each);
  const double bandwidth_bound = each * 8 / 100e9;
  EXPECT_GE(result.iterations[0].seconds, bandwidth_bound);
  EXPECT_LE(result.iterations[0].seconds, bandwidth_bound * 1.10);
}

TEST(VirtualTime, ComputeAndExposedCommunicationAddUpToTheStep) {
  SmallJob job = one_gpu_nodes(4);
  job.compute(3 * kPicosPerMilli).collective(Func::all_reduce, 400'000);
  const IterationReport i = job.run().iterations.at(0);
  EXPECT_DOUBLE_EQ(i.compute_seconds, 3e-3);
  EXPECT_NEAR(i.compute_seconds + i.exposed_comm_seconds, i.seconds, 1e-9);
}

Op at_event(Op::Kind kind, std::uint32_t event) { return {.kind = kind, .event = event}; }

TEST(VirtualTime, OverlappedCommunicationIsExposedOnlyWhereComputeWaits) {
  SmallJob job = one_gpu_nodes(4);
  Program& p = job.program();
  p.stream_names = {"compute", "comm"};
  p.events = 2;
  const Op reduce{.kind = Op::Kind::collective, .count = 400'000},
      compute{.duration = kPicosPerMilli / 10};
  p.streams = {{compute, at_event(Op::Kind::record, 0), compute, at_event(Op::Kind::wait, 1)},
               {at_event(Op::Kind::wait, 0), reduce, at_event(Op::Kind::record, 1)}};
  const double comm = 6 * (5e-6 + 400'000 * 8 / 100e9);
  const IterationReport i = job.run().iterations.at(0);
  expect_close(i.seconds, 1e-4 + comm);
  expect_close(i.exposed_comm_seconds, comm - 1e-4);
}

// The communication stream computes before and after its call, as with compressed gradients, and
// hands on to a third stream. Only what it computes after the call is compute: what comes before
// the end of the call is a wait for it.
TEST(VirtualTime, OnlyWhatAStreamComputesAfterItsCallsCountsAsCompute) {
  SmallJob job = one_gpu_nodes(4);
  Program& p = job.program();
  p.stream_names = {"compute", "comm", "host"};
  p.events = 2;
  const Op reduce{.kind = Op::Kind::collective, .count = 400'000},
      encode{.duration = kPicosPerMilli}, decode{.duration = 2 * kPicosPerMilli},
      finish{.duration = 3 * kPicosPerMilli};
  p.streams = {{at_event(Op::Kind::wait, 1)},
               {encode, reduce, decode, at_event(Op::Kind::record, 0)},
               {at_event(Op::Kind::wait, 0), finish, at_event(Op::Kind::record, 1)}};
  const double comm = 6 * (5e-6 + 400'000 * 8 / 100e9);
  const IterationReport i = job.run().iterations.at(0);
  expect_close(i.seconds, 6e-3 + comm);
  EXPECT_DOUBLE_EQ(i.compute_seconds, 5e-3);
  expect_close(i.exposed_comm_seconds, 1e-3 + comm);
  EXPECT_EQ(i.bubble_seconds, 0);
}

// A stream records an event three times before another waits for it: each wait is for a record of
// its own, the oldest first.
TEST(VirtualTime, TheNthWaitOfAnEventIsForItsNthRecord) {
  SmallJob job = one_gpu_nodes(2);
  Program& p = job.program();
  p.stream_names = {"host", "kernels"};
  p.events = 1;
  const auto compute = [](Picoseconds duration) {
    Op op;
    op.duration = duration;
    return op;
  };
  Op record, wait;
  record.kind = Op::Kind::record;
  wait.kind = Op::Kind::wait;
  p.streams.assign(2, {});
  p.streams[1].push_back(compute(4 * kPicosPerMilli / 10));
  for (int i = 0; i < 3; ++i) {
    p.streams[0].push_back(compute(kPicosPerMilli));
    p.streams[0].push_back(record);
    p.streams[1].push_back(wait);
    p.streams[1].push_back(compute(4 * kPicosPerMilli / 10));
  }
  expect_close(job.run().iterations.at(0).seconds, 3.4e-3);  // a later record first: 3.8 or 4.2 ms
  p.streams[1] = {};
  for (int i = 0; i < 3; ++i) {
    p.streams[1].push_back(wait);
    p.streams[1].push_back(compute(2 * kPicosPerMilli));
  }
  expect_close(job.run().iterations.at(0).seconds, 7e-3);
}

TEST(VirtualTime, SendAndRecvMeetAndTheReceiversWaitIsBubble) {
  SmallJob job = one_gpu_nodes(2);
  job.workload.roles.push_back(job.workload.roles[0]);
  job.workload.role_of = {0, 1};
  Op send;
  send.kind = Op::Kind::send;
  send.peer = 1;
  send.count = 250'000;
  Op recv = send;
  recv.kind = Op::Kind::recv;
  recv.peer = -1;
  job.workload.roles[0].iterations[0].streams[0] = {send};
  job.workload.roles[1].iterations[0].streams[0] = {recv};
  const IterationReport i = job.run().iterations.at(0);
  expect_close(i.seconds, 5e-6 + 1e6 * 8 / 100e9);
  EXPECT_NEAR(i.bubble_seconds * 2, i.seconds,
              1e-9);  // mean of a sender that does not wait and the receiver
}

TEST(VirtualTime, TheSameSeedGivesTheSameRunToTheLastBit) {
  SmallJob job(4, 4, FabricKind::virtual_time);
  job.spec.run.jitter = 0.2;
  job.spec.run.iterations = 5;
  job.compute(kPicosPerMilli)
      .collective(Func::all_reduce, 123'457)
      .compute(kPicosPerMilli)
      .collective(Func::all_to_all, 999);
  const Result a = job.run(), b = job.run();
  ASSERT_EQ(a.iterations.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(a.iterations[i].seconds, b.iterations[i].seconds);
  job.spec.run.seed = 2;
  EXPECT_NE(job.run().iterations[4].seconds, a.iterations[4].seconds);
}

TEST(VirtualTime, ShardsGiveTheSameRunAsOne) {
  SmallJob job(8, 2, FabricKind::virtual_time);
  job.spec.run.jitter = 0.2;
  job.spec.run.iterations = 3;
  job.compute(kPicosPerMilli)
      .collective(Func::all_reduce, 200'003)
      .collective(Func::all_to_all, 501);
  testing::expect_alike_with_shards(job, {2, 3, 8});
}

TEST(VirtualTime, CreditsHoldASenderUntilItsReceiverHasTakenASlice) {
  // One message of 64 slices with one credit: every slice waits for the credit of the one before.
  SmallJob job = one_gpu_nodes(2);
  job.spec.collectives.slice_bytes = 4000;
  job.collective(Func::broadcast, 64'000);
  const double free_running = seconds_of(job);
  expect_close(free_running, 5e-6 + 256'000 * 8 / 100e9);
  job.spec.collectives.credits = 1;
  expect_close(seconds_of(job), 64 * (5e-6 + 4000 * 8 / 100e9) + 63 * 5e-6);
  job.spec.collectives.credits = 64;
  EXPECT_EQ(seconds_of(job), free_running);
}

TEST(VirtualTime, AnIncastIsServedAtTheRateOfTheIngress) {
  // Seven ranks send to one at the same time: its NIC takes them one after the other.
  SmallJob job = one_gpu_nodes(8);
  job.workload.roles.assign(8, job.workload.roles[0]);
  for (int r = 0; r < 8; ++r) job.workload.role_of[WorldRank(r)] = static_cast<std::uint16_t>(r);
  for (int r = 1; r < 8; ++r) {
    Op send;
    send.kind = Op::Kind::send;
    send.peer = -r;
    send.count = 250'000;
    job.workload.roles[r].iterations[0].streams[0] = {send};
    Op recv = send;
    recv.kind = Op::Kind::recv;
    recv.peer = r;
    job.workload.roles[0].iterations[0].streams[0].push_back(recv);
  }
  expect_close(seconds_of(job), 5e-6 + 7 * 1e6 * 8 / 100e9);
}

// The GPUs of one node, message by message or each call as one delay.
SmallJob one_node(InsideNode how = InsideNode::messages) {
  SmallJob job(1, 8, FabricKind::virtual_time);
  job.spec.cluster.intra_node = {80e9, 3 * kPicosPerMicro};  // a microsecond for 10 kB
  job.spec.fabric.inside_node = how;
  return job;
}

TEST(VirtualTime, AnIncastInsideANodeIsServedAtTheRateOfTheReceiver) {
  const auto ends_after = [](const std::vector<std::uint64_t>& microseconds) {
    SmallJob job = one_node();
    testing::with_sends(job, {});
    for (std::size_t i = 0; i < microseconds.size(); ++i)
      testing::append_sends(job, {{static_cast<int>(i) + 1, 0}}, 2500 * microseconds[i]);
    return std::llround(seconds_of(job) * 1e12);
  };
  EXPECT_EQ(ends_after({5}), 8 * kPicosPerMicro);
  EXPECT_EQ(ends_after({5, 5, 5, 5, 5, 5, 5}), 38 * kPicosPerMicro);
  // The ingress is idle while the short ones are on their way alone, and never after.
  EXPECT_EQ(ends_after({1, 2, 3, 4, 5, 6, 7}), 31 * kPicosPerMicro);
  EXPECT_EQ(ends_after({7, 1, 1}), 12 * kPicosPerMicro);
  EXPECT_EQ(ends_after({40, 1, 1}), 45 * kPicosPerMicro);
}

// What several of a node's communicators send to one GPU shares its port.
TEST(VirtualTime, GroupsOfANodeShareTheIngressOfAGpu) {
  SmallJob job = one_node();
  Group evens{1, {}}, odds{2, {WorldRank(0)}};
  for (int r = 0; r < 8; ++r) (r % 2 == 0 ? evens : odds).members.push_back(WorldRank(r));
  job.workload.group_names = {"all", "evens", "odds"};
  job.workload.groups.push_back(evens);
  job.workload.groups.push_back(odds);
  job.program().stream_names.push_back("other");
  job.program().streams.push_back({});
  testing::with_sends(job, {});
  for (const Group& group : {evens, odds}) {
    for (std::size_t i = 1; i < group.members.size(); ++i) {
      Op op;
      op.group = static_cast<std::uint16_t>(group.kind);
      op.count = 10 * 2500;
      op.kind = Op::Kind::send;
      op.peer = -static_cast<int>(i);
      job.workload.roles[static_cast<std::size_t>(group.members[i].value())]
          .iterations[0]
          .streams[0]
          .push_back(op);
      op.kind = Op::Kind::recv;
      op.peer = static_cast<int>(i);
      job.workload.roles[0].iterations[0].streams[group.kind - 1].push_back(op);
    }
  }
  EXPECT_EQ(std::llround(seconds_of(job) * 1e12), 73 * kPicosPerMicro);
}

// Its root sends a slice to each tree in turn: the buffer takes 320 us, and few slices come after.
TEST(VirtualTime, ADoubleTreesBroadcastFillsBothTreesAtOnce) {
  for (const InsideNode how : {InsideNode::model, InsideNode::messages}) {
    SmallJob job = one_node(how);
    job.spec.collectives.algorithm(Func::broadcast) = "double_tree";
    job.spec.collectives.slice_bytes = 20'000;
    job.collective(Func::broadcast, 800'000);
    EXPECT_NEAR(seconds_of(job), 340e-6, 5e-6);
  }
}

// Links inside a node, and between nodes of one GPU whose NICs are as fast: the same time, with
// credits and permissions, too.
TEST(VirtualTime, GpusOfANodeAreLikeNodesOfOneGpu) {
  const Func funcs[] = {Func::all_reduce, Func::all_gather, Func::broadcast, Func::all_to_all};
  for (const char* library : {"generic", "gloo"})
    for (const std::uint32_t credits : {0u, 1u, 3u})
      for (const Func func : funcs) {
        if (credits > 0 && std::string_view(library) != "generic") continue;
        SCOPED_TRACE(std::string(library) + " " + std::to_string(static_cast<int>(func)));
        const auto job = [&](SmallJob cluster) {
          cluster.spec.collectives.library = library;
          cluster.spec.collectives.credits = credits;
          if (credits > 0) cluster.spec.collectives.slice_bytes = 20'000;
          return cluster.collective(func, 800'003).collective(Func::reduce, 100'001);
        };
        SmallJob nodes = one_gpu_nodes(8), node = one_node();
        nodes.spec.cluster.nic = node.spec.cluster.intra_node;
        EXPECT_EQ(seconds_of(job(node)), seconds_of(job(nodes)));
      }
}

TEST(VirtualTime, ADeadlockIsNamedNotWaitedFor) {
  SmallJob job = one_gpu_nodes(2);
  Op recv;
  recv.kind = Op::Kind::recv;
  recv.peer = 1;
  recv.count = 1;
  job.program().streams[0] = {recv};
  const Result result = job.run();
  EXPECT_NE(result.interrupted.find("deadlock: rank 0 on host 0 in send_recv #0 'op' of group all"),
            std::string::npos)
      << result.interrupted;
}

TEST(VirtualTime, ReportsItselfAsModelledAndFaithful) {
  SmallJob job = one_gpu_nodes(2);
  job.collective(Func::all_reduce, 10);
  const Fidelity f = job.run().fidelity;
  EXPECT_TRUE(f.modelled);
  EXPECT_TRUE(f.faithful);
}

TEST(Collectives, NcclsRingCrossesNodesOnEveryRailOfAnHgxNode) {
  // Sixteen channels over eight rails: channel c enters on NIC c and leaves on c + 1 or c - 1, so
  // every NIC carries an eighth of what a flat ring over 32 ranks sends from node to node.
  SmallJob job(4, 8, FabricKind::virtual_time);
  job.spec.collectives.library = "nccl-2.28";
  job.spec.collectives.algorithm(Func::all_reduce) = "ring";
  job.spec.collectives.protocol = "Simple";
  job.spec.collectives.node_template = "hgx-h100-400g";
  const std::uint64_t count = 32 * 1024 * 1024;
  job.collective(Func::all_reduce, count);
  const Result simple = job.run();
  EXPECT_EQ(simple.pairs.size(), 32u);
  const double per_rail = 2.0 * 31 / 32 * static_cast<double>(count * 4) / 8;
  for (const PairTraffic& pair : simple.pairs) EXPECT_NEAR(pair.bytes, per_rail, per_rail * 0.01);
  job.spec.collectives.protocol = "LL";  // half of every line is flags
  EXPECT_NEAR(job.run().wire_bytes_per_iteration, 2 * simple.wire_bytes_per_iteration,
              simple.wire_bytes_per_iteration * 0.001);
}

TEST(Collectives, AnUnknownAlgorithmIsRefusedWithTheChoices) {
  SmallJob job = one_gpu_nodes(2);
  job.spec.collectives.algorithm(Func::all_reduce) = "rong";
  job.collective(Func::all_reduce, 10);
  try {
    job.run();
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("it has: ring, recursive_doubling"), std::string::npos)
        << e.what();
    EXPECT_EQ(e.exit_code(), 2);
  }
}

// Two computes of 1 ms: the first begins during an all-reduce, the second after it.
TEST(VirtualTime, SlowsComputesThatBeginBesideCommunication) {
  const auto step = [](double slowdown) {
    SmallJob job(2, 1, FabricKind::virtual_time);
    job.spec.run.compute_slowdown = slowdown;
    Program& program = job.program();
    program.stream_names = {"compute", "comm"};
    program.streams.resize(2);
    job.compute(kPicosPerMicro).compute(1000 * kPicosPerMicro).compute(1000 * kPicosPerMicro);
    program.streams[1].push_back({.kind = Op::Kind::collective, .count = 1 << 10});
    return job.run().iterations.at(0).seconds;
  };
  const double alone = step(0);
  EXPECT_NEAR(alone, 2001e-6, 1e-9);
  EXPECT_NEAR(step(0.25) - alone, 250e-6, 1e-9 + 0.25e-6);
}

// As under DDP: a call begins when a compute has ended, and so does the next compute.
TEST(VirtualTime, SlowsAComputeThatBeginsWithACall) {
  const auto step = [](double slowdown) {
    SmallJob job(2, 1, FabricKind::virtual_time);
    job.spec.run.compute_slowdown = slowdown;
    Program& program = job.program();
    program.stream_names = {"compute", "comm"};
    program.streams.resize(2);
    program.events = 1;
    job.compute(1000 * kPicosPerMicro);
    program.streams[0].push_back(at_event(Op::Kind::record, 0));
    job.compute(1000 * kPicosPerMicro);
    program.streams[1].push_back(at_event(Op::Kind::wait, 0));
    program.streams[1].push_back({.kind = Op::Kind::collective, .count = 1 << 10});
    return job.run().iterations.at(0).seconds;
  };
  const double alone = step(0);
  EXPECT_NEAR(alone, 2000e-6, 1e-9);
  EXPECT_NEAR(step(0.25) - alone, 250e-6, 1e-9);
}

// Three ranks hand on a tensor: two transfers.
TEST(VirtualTime, CountsATransferOnce) {
  SmallJob job(3, 1, FabricKind::virtual_time);
  job.workload.roles.clear();
  for (int rank = 0; rank < 3; ++rank) {
    Program program{{"compute"}, {{}}, {"op"}, 0};
    Op op;
    op.count = 1000;
    op.kind = Op::Kind::recv;
    op.peer = -1;
    if (rank > 0) program.streams[0].push_back(op);
    op.kind = Op::Kind::send;
    op.peer = 1;
    if (rank < 2) program.streams[0].push_back(op);
    job.workload.role_of[WorldRank(rank)] = static_cast<std::uint16_t>(rank);
    job.workload.roles.push_back({std::to_string(rank), {program}});
  }
  const Result result = job.run();
  ASSERT_EQ(result.collectives.size(), 1u);
  EXPECT_EQ(result.collectives[0].calls, 2);
  EXPECT_EQ(result.collectives[0].bytes, 2 * 4000);
}

TEST(VirtualTime, IsDeterministicUnlessThereIsJitter) {
  SmallJob job(2, 1, FabricKind::virtual_time);
  job.compute(kPicosPerMilli);
  EXPECT_TRUE(job.run().deterministic);
  job.spec.run.jitter = 0.1;
  EXPECT_FALSE(job.run().deterministic);
}

}  // namespace
}  // namespace ghostrank
