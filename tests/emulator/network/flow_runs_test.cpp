// Jobs whose calls travel as flows: beside the same jobs message by message, and closed forms where
// links are shared.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/routing.h"
#include "profiles/error.h"
#include "tests/emulator/network/leaf_spine.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::append_sends;
using testing::kCount;
using testing::kLatency;
using testing::kNicRate;
using testing::kSerial;
using testing::leaf_spine;
using testing::ledger_text;
using testing::seconds_of;
using testing::SmallJob;
using testing::with_sends;

SmallJob job_of(int nodes, int gpus, NetworkModel network = NetworkModel::flow) {
  SmallJob job(nodes, gpus, FabricKind::virtual_time);
  job.spec.cluster.nic = {kNicRate, 6 * kPicosPerMicro};
  job.spec.fabric.network = network;
  return job;
}

// ---- Alone on an idle network ----

TEST(Flows, AloneTakeAsLongAsTheirMessagesAndCountThemAlike) {
  for (const char* library : {"generic", "gloo", "nccl-2.28", "openmpi-4.1"})
    for (const Func func : {Func::all_reduce, Func::all_gather, Func::reduce_scatter,
                            Func::broadcast, Func::all_to_all})
      for (const auto& [nodes, gpus] : {std::pair{5, 1}, std::pair{4, 2}})
        for (const std::uint64_t count : {7ull, 40'000ull, 3'000'000ull}) {
          if (library == std::string("gloo") && func == Func::reduce_scatter) continue;
          SmallJob flow = job_of(nodes, gpus);
          flow.spec.collectives.library = library;
          flow.collective(func, count);
          SmallJob loggp = flow;
          loggp.spec.fabric.network = NetworkModel::loggp;
          const Result a = flow.run(), b = loggp.run();
          EXPECT_NEAR(seconds_of(a), seconds_of(b), 0.001 * seconds_of(b))
              << library << ' ' << name_of(func) << ' ' << nodes << 'x' << gpus << ' ' << count;
          EXPECT_EQ(ledger_text(a), ledger_text(b)) << library << ' ' << name_of(func);
        }
}

// Links add their latency to the messages that cross them, and to no others.
TEST(Flows, AloneOverLinksWithLatencyTakeAsLongAsTheirMessages) {
  for (const auto kind : {Kind::leaf_spine, Kind::fat_tree, Kind::torus, Kind::dragonfly})
    for (const auto placement : {TopologySpec::Placement::packed, TopologySpec::Placement::random})
      for (const auto& [library, func] :
           {std::pair{"generic", Func::all_reduce}, std::pair{"generic", Func::all_to_all},
            std::pair{"nccl-2.28", Func::all_reduce}, std::pair{"nccl-2.28", Func::broadcast},
            std::pair{"generic", Func::send_recv}}) {
        SmallJob flow = job_of(8, 2);
        flow.spec.collectives.library = library;
        TopologySpec& topology = flow.spec.cluster.topology;
        topology.kind = kind;
        topology.placement = placement;
        topology.leaves = 4;
        topology.dimensions = {2, 3};
        topology.uplink_bps = topology.link_bps = 100 * kNicRate;
        topology.link_latency = 5 * kPicosPerMicro;
        if (kind == Kind::fat_tree) topology.pods = 2;
        if (func == Func::send_recv)
          with_sends(flow, {{0, 2}, {8, 14}});
        else
          flow.collective(func, 16'000);
        SmallJob loggp = flow;
        loggp.spec.fabric.network = NetworkModel::loggp;
        const Result a = flow.run(), b = loggp.run();
        EXPECT_NEAR(seconds_of(a), seconds_of(b), 0.01 * seconds_of(b))
            << library << ' ' << name_of(func) << static_cast<int>(kind)
            << static_cast<int>(placement);
      }
}

// Their messages wait for each other over links as over NICs.
TEST(Flows, AloneOverSlowLinksTakeAsLongAsTheirMessages) {
  for (const auto& [library, func] :
       {std::pair{"generic", Func::all_reduce}, std::pair{"generic", Func::broadcast},
        std::pair{"generic", Func::all_to_all}, std::pair{"nccl-2.28", Func::broadcast},
        std::pair{"gloo", Func::all_reduce}})
    for (const Picoseconds latency : {0 * kPicosPerMicro, 5 * kPicosPerMicro})
      for (const std::uint64_t count : {4'000ULL, 250'000ULL}) {
        SmallJob flow = job_of(16, 1);
        flow.spec.collectives.library = library;
        TopologySpec& topology = flow.spec.cluster.topology;
        topology.kind = TopologySpec::Kind::leaf_spine;
        topology.leaves = 16;
        topology.spines = 1;
        topology.uplink_bps = kNicRate / 4;
        topology.link_latency = latency;
        flow.collective(func, count);
        SmallJob loggp = flow;
        loggp.spec.fabric.network = NetworkModel::loggp;
        const Result a = flow.run(), b = loggp.run();
        EXPECT_NEAR(seconds_of(a), seconds_of(b), 0.01 * seconds_of(b))
            << library << ' ' << name_of(func) << ' ' << latency << ' ' << count;
      }
}

// All paths between two leaves begin on one link, however many cores they choose from.
TEST(Flows, AloneOverPathsOfOneSlowLinkTakeAsLongAsTheirMessages) {
  for (const Routing& routing : routings()) {
    SmallJob flow = job_of(16, 1);
    TopologySpec& topology = flow.spec.cluster.topology;
    topology.kind = TopologySpec::Kind::fat_tree;
    topology.pods = 2;
    topology.leaves = 8;
    topology.spines = 1;
    topology.cores = 4;
    topology.uplink_bps = kNicRate / 4;
    topology.routing = &routing;
    flow.collective(Func::broadcast, kCount);
    SmallJob loggp = flow;
    loggp.spec.fabric.network = NetworkModel::loggp;
    const Result a = flow.run(), b = loggp.run();
    EXPECT_NEAR(seconds_of(a), seconds_of(b), 0.01 * seconds_of(b)) << routing.name;
  }
}

// A message has the rate of the link that the routing chooses for it, of however many, and links
// hardly slower than NICs hold it up, too.
TEST(Flows, AloneOverSeveralSlowLinksTakeAsLongAsTheirMessages) {
  const Routing& spray = *std::find_if(routings().begin(), routings().end(), [](const Routing& r) {
    return r.per == Routing::Per::message;
  });
  for (const auto& [spines, share] :
       {std::pair{4, 0.5}, std::pair{4, 0.25}, std::pair{1, 0.909}, std::pair{1, 0.95}}) {
    SmallJob flow = job_of(16, 1);
    flow.spec.collectives.library = "nccl-2.28";
    TopologySpec& topology = flow.spec.cluster.topology;
    topology.kind = TopologySpec::Kind::leaf_spine;
    topology.leaves = 16;
    topology.spines = spines;
    topology.uplink_bps = kNicRate * share;
    topology.routing = &spray;
    flow.collective(Func::broadcast, kCount);
    SmallJob loggp = flow;
    loggp.spec.fabric.network = NetworkModel::loggp;
    const Result a = flow.run(), b = loggp.run();
    EXPECT_NEAR(seconds_of(a), seconds_of(b), 0.02 * seconds_of(b)) << spines << ' ' << share;
  }
}

// Of four members on a node, two and two share a NIC in one group, three do in the other.
TEST(Flows, OfGroupsWhoseMembersShareNicsOtherwiseTakeTheirOwnTime) {
  SmallJob flow = job_of(4, 8);
  flow.spec.cluster.nics_per_node = 2;
  std::vector<WorldRank> even, uneven;
  for (const int rank : {0, 1, 4, 5, 8, 9, 12, 13}) even.emplace_back(rank);
  for (const int rank : {16, 17, 18, 20, 24, 25, 26, 28}) uneven.emplace_back(rank);
  flow.workload.roles.push_back(flow.workload.roles[0]);  // of the ranks in no group
  flow.workload.role_of.assign(flow.workload.ranks, 1);
  for (const auto& members : {even, uneven})
    for (const WorldRank rank : members) flow.workload.role_of[rank] = 0;
  flow.workload.groups = {{0, even}, {0, uneven}};
  flow.collective(Func::all_to_all, 1'000'000);
  SmallJob loggp = flow;
  loggp.spec.fabric.network = NetworkModel::loggp;
  const Result a = flow.run(), b = loggp.run();
  EXPECT_NEAR(seconds_of(a), seconds_of(b), 0.001 * seconds_of(b));
}

// Messages that arrive at one time pass in the order of their ranks. Both groups have the same
// members on nodes and NICs; in one the ranks go upwards.
TEST(Flows, OfGroupsOfAnyOrderTakeTheirOwnTime) {
  const std::vector<int> upwards{1, 2, 3, 4, 5}, shuffled{11, 8, 9, 6, 7};
  for (const auto& members :
       std::vector<std::vector<std::vector<int>>>{{upwards}, {shuffled}, {upwards, shuffled}}) {
    SmallJob flow = job_of(6, 2);
    flow.spec.cluster.nics_per_node = 2;
    flow.spec.collectives.library = "gloo";
    flow.workload.roles.push_back(flow.workload.roles[0]);  // of the ranks in no group
    flow.workload.role_of.assign(flow.workload.ranks, 1);
    flow.workload.groups.clear();
    for (const std::vector<int>& ranks : members) {
      Group& group = flow.workload.groups.emplace_back();
      for (const int rank : ranks) {
        group.members.emplace_back(rank);
        flow.workload.role_of[WorldRank(rank)] = 0;
      }
    }
    flow.collective(Func::all_to_all, 100'000);
    SmallJob loggp = flow;
    loggp.spec.fabric.network = NetworkModel::loggp;
    const Result a = flow.run(), b = loggp.run();
    EXPECT_NEAR(seconds_of(a), seconds_of(b), 1e-9) << members.size() << members[0][0];
  }
}

TEST(Flows, OfTransfersAloneTakeAsLongAsTheirMessages) {
  for (const char* library : {"generic", "nccl-2.28"}) {
    SmallJob flow = job_of(4, 2);
    flow.spec.collectives.library = library;
    with_sends(flow, {{0, 2}, {3, 5}, {6, 1}, {2, 0}});
    SmallJob loggp = flow;
    loggp.spec.fabric.network = NetworkModel::loggp;
    const Result a = flow.run(), b = loggp.run();
    EXPECT_NEAR(seconds_of(a), seconds_of(b), 0.01 * seconds_of(b)) << library;
    EXPECT_EQ(ledger_text(a), ledger_text(b)) << library;
  }
}

// Among many ranks that exchange a little, one pair exchanges much.
TEST(Flows, OfUnequalBlocksAloneTakeAsLongAsTheirMessages) {
  constexpr std::size_t kNodes = 64;
  auto counts = std::make_shared<std::vector<std::uint64_t>>(kNodes * kNodes, 256);
  counts->at(1) = 20'000'000;
  SmallJob flow = job_of(kNodes, 1);
  flow.collective(Func::all_to_all_v, counts);
  SmallJob loggp = flow;
  loggp.spec.fabric.network = NetworkModel::loggp;
  EXPECT_NEAR(seconds_of(flow.run()), seconds_of(loggp.run()), 0.002 * seconds_of(loggp.run()));
}

// Headers are most of what small messages are on the wire, and larger ones have no more of them.
TEST(Flows, OfFewBytesAloneTakeTheirHeadersTimeToo) {
  for (const Func func : {Func::gather, Func::scatter, Func::all_reduce, Func::barrier}) {
    SmallJob flow = job_of(6, 3);
    flow.spec.cluster.nic = {1e9, 0};
    flow.spec.fabric.framing = {1448, 66, 0};
    flow.collective(func, func == Func::barrier ? 0 : 1);
    SmallJob loggp = flow;
    loggp.spec.fabric.network = NetworkModel::loggp;
    const Result a = flow.run(), b = loggp.run();
    EXPECT_NEAR(seconds_of(a), seconds_of(b), 0.001 * seconds_of(b)) << name_of(func);
  }
}

// Transfers between many pairs of GPUs on different nodes, each in its own stream, one after the
// other: seconds until each has arrived.
std::vector<double> durations(NetworkModel network, const char* library, int nics,
                              Op::Within within) {
  SmallJob job = job_of(3, 4, network);
  job.spec.cluster.nics_per_node = nics;
  job.spec.cluster.topology = leaf_spine(2, 2, 1);
  job.spec.cluster.topology.link_latency = 3 * kPicosPerMicro;
  job.spec.collectives.library = library;
  with_sends(job, {});
  RunOptions options;
  constexpr Picoseconds kApart = 5000 * kPicosPerMicro;
  Picoseconds at = 0;
  const auto new_stream = [&](int rank, const Op& op) {
    Program& program = job.workload.roles[rank].iterations[0];
    program.streams.push_back(OpList{Op{.duration = at}, op});
    program.stream_names.emplace_back("transfer");
    return std::pair{rank, static_cast<int>(program.streams.size()) - 1};
  };
  std::vector<std::pair<int, int>> receivers;
  for (const std::uint64_t count : {3'000u, 2'000'000u})
    for (int from = 0; from < 12; ++from)
      for (int to = 0; to < 12; to += from % 3 + 1) {
        if (from / 4 == to / 4) continue;
        Op op;
        op.count = count;
        op.within = within;
        op.kind = Op::Kind::send;
        op.peer = to - from;
        new_stream(from, op);
        op.kind = Op::Kind::recv;
        op.peer = from - to;
        receivers.push_back(new_stream(to, op));
        at += kApart;
      }
  for (int r = 0; r < 12; ++r) options.trace_ranks.push_back(WorldRank(r));
  std::map<std::pair<int, int>, Picoseconds> ends;
  for (const Span& s : job.run(nullptr, options).spans)
    ends[{s.rank.value(), s.stream}] = s.start + s.duration;
  std::vector<double> out;
  for (std::size_t i = 0; i < receivers.size(); ++i)
    out.push_back(seconds(ends.at(receivers[i]) - static_cast<Picoseconds>(i) * kApart));
  return out;
}

// Of transfers that are alike only one is played; those that pass links between switches are not
// like those that do not.
TEST(Flows, OfEveryPairTakeAsLongAsTheirMessages) {
  for (const char* library : {"generic", "nccl-2.28"})
    for (const int nics : {1, 2, 4})
      for (const Op::Within within : {Op::Within::group, Op::Within::pair}) {
        const std::vector<double> flow = durations(NetworkModel::flow, library, nics, within),
                                  loggp = durations(NetworkModel::loggp, library, nics, within);
        ASSERT_GT(flow.size(), 100u);
        std::set<long> different;
        for (const double one : loggp) different.insert(std::lround(one * 1e9));
        EXPECT_EQ(different.size(), 4u);  // two sizes, in a leaf and between leaves
        for (std::size_t i = 0; i < flow.size(); ++i)
          ASSERT_NEAR(flow[i], loggp[i], loggp[i] / 4096)  // to which shares of NICs are rounded
              << library << ", " << nics << " NICs, transfer " << i;
      }
}

// Both send before they receive: a sender does not wait for its receiver.
TEST(Flows, LetAnEagerSenderGoOn) {
  SmallJob job = job_of(2, 1);
  for (const Op::Kind kind : {Op::Kind::send, Op::Kind::recv}) {
    Op op;
    op.count = kCount;
    op.kind = kind;
    op.peer = 1;
    job.program().streams[0].push_back(op);
  }
  EXPECT_NEAR(seconds_of(job.run()), kLatency + kSerial, 1e-11);
}

// The sender is three transfers ahead of its receiver, then the receiver waits for its sender.
TEST(Flows, OfAPairMeetInOrderWhicheverEndIsAhead) {
  SmallJob flow = job_of(2, 1);
  with_sends(flow, {});
  const auto append = [&](int rank, const Op& op) {
    flow.workload.roles[rank].iterations[0].streams[0].push_back(op);
  };
  const auto append_transfers = [&] {
    for (const std::uint64_t count : {kCount, 3 * kCount, 2 * kCount}) {
      append(0, {.kind = Op::Kind::send, .peer = 1, .count = count});
      append(1, {.kind = Op::Kind::recv, .peer = -1, .count = count});
    }
  };
  append(1, {.duration = 10'000 * kPicosPerMicro});
  append_transfers();
  append(0, {.duration = 30'000 * kPicosPerMicro});
  append_transfers();
  SmallJob loggp = flow;
  loggp.spec.fabric.network = NetworkModel::loggp;
  const Result a = flow.run(), b = loggp.run();
  EXPECT_GT(seconds_of(b), 30e-3);
  EXPECT_NEAR(seconds_of(a), seconds_of(b), 1e-9);
  EXPECT_EQ(ledger_text(a), ledger_text(b));
}

// Transfers of as many elements, of different sizes.
TEST(Flows, OfDifferentTypesTakeAsLongAsTheirMessages) {
  for (const char* library : {"generic", "nccl-2.28"}) {
    SmallJob flow = job_of(2, 1);
    flow.spec.collectives.library = library;
    with_sends(flow, {});
    for (const DataType type : {DataType::float32, DataType::float16})
      for (const int rank : {0, 1}) {
        Op op{.kind = rank == 0 ? Op::Kind::send : Op::Kind::recv, .func = Func::send_recv};
        op.dtype = type;
        op.peer = rank == 0 ? 1 : -1;
        op.count = kCount;
        flow.workload.roles[rank].iterations[0].streams[0].push_back(op);
      }
    SmallJob loggp = flow;
    loggp.spec.fabric.network = NetworkModel::loggp;
    const Result a = flow.run(), b = loggp.run();
    EXPECT_NEAR(seconds_of(a), seconds_of(b), 0.01 * seconds_of(b)) << library;
    EXPECT_EQ(ledger_text(a), ledger_text(b)) << library;
  }
}

// ---- Shared links ----

TEST(Flows, ShareALinkFairly) {
  SmallJob job = job_of(4, 1);
  job.spec.cluster.topology = leaf_spine(2, 1, 2);
  const Result result = with_sends(job, {{0, 2}, {1, 3}}).run();
  EXPECT_NEAR(seconds_of(result), kLatency + 2 * kSerial, 1e-10);
  ASSERT_TRUE(result.network);
  EXPECT_EQ(result.network->model, "flow");
  EXPECT_NEAR(result.network->hottest[0].utilisation, 2 * kSerial / (kLatency + 2 * kSerial), 1e-6);
  EXPECT_EQ(result.network->tiers[0].messages, 2);
  // Either of the two links that they share holds both back, for as long as one takes alone.
  EXPECT_NEAR(*result.network->tiers[0].mean_wait_s + *result.network->tiers[1].mean_wait_s,
              kSerial, 1e-10);
  EXPECT_FALSE(result.network->tiers[0].longest_wait_s);
}

TEST(Flows, OfAnIncastShareTheReceiver) {
  for (const int senders : {2, 7}) {
    SmallJob job = job_of(1 + senders, 1);
    std::vector<std::pair<int, int>> pairs;
    for (int r = 1; r <= senders; ++r) pairs.push_back({r, 0});
    EXPECT_NEAR(seconds_of(with_sends(job, pairs).run()), kLatency + senders * kSerial, 1e-9);
  }
}

TEST(Flows, OfAPermutationShareTheLinkBetweenLeaves) {
  for (const double oversubscription : {1.0, 8.0, 16.0}) {
    SmallJob job = job_of(16, 1);
    job.spec.cluster.topology = leaf_spine(2, 1, oversubscription);
    std::vector<std::pair<int, int>> pairs;
    for (int r = 0; r < 8; ++r) pairs.push_back({r, 8 + r});
    const double permutation = seconds_of(with_sends(job, pairs).run());
    EXPECT_NEAR(permutation, kLatency + std::max(1.0, oversubscription) * kSerial, 1e-9);
  }
}

// Message by message, a link that two rings cross serves them in turn; as flows each has half. Both
// rings take as long.
TEST(Flows, OfARingHaveTheRateOfItsSlowestEdge) {
  for (const double oversubscription : {4.0, 16.0}) {
    std::map<NetworkModel, double> seconds;
    for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
      SmallJob job = job_of(8, 1, network);
      job.spec.cluster.topology = leaf_spine(2, 1, oversubscription);
      job.spec.cluster.nic.latency = 1000;
      job.spec.collectives.algorithm(Func::all_reduce) = "ring";
      job.collective(Func::all_reduce, 64 * kCount);
      const Result result = job.run();
      seconds[network] = seconds_of(result);
      if (network == NetworkModel::flow) {
        EXPECT_EQ(result.network->fluids, 1u);
      }
    }
    // The fill of the slow edge's pipeline: a step per edge at the most.
    EXPECT_LE(seconds[NetworkModel::flow], seconds[NetworkModel::loggp] * 1.01);
    EXPECT_GE(seconds[NetworkModel::flow], seconds[NetworkModel::loggp] * 0.75);
  }
}

TEST(Flows, OfUnlimitedNicsTakeTheTimeOfTheirLinks) {
  for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
    SmallJob job = job_of(4, 1, network);
    job.spec.cluster.topology = leaf_spine(2, 1, 1);
    job.spec.cluster.topology.uplink_bps = kNicRate;
    job.spec.cluster.nic.rate_bps = 0;
    with_sends(job, {{0, 2}, {1, 3}});
    EXPECT_NEAR(seconds_of(job.run()), 2 * kSerial + kLatency, 0.01 * kSerial);
  }
}

// A broadcast and a transfer between the same two ranks choose their paths apart, as their messages
// do.
TEST(Flows, OfTransfersTakeTheirOwnPaths) {
  std::set<std::uint64_t> busiest;
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    std::map<NetworkModel, std::map<std::string, std::uint64_t>> bytes;
    for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
      SmallJob job = job_of(2, 1, network);
      job.spec.cluster.topology = leaf_spine(2, 4, 1);
      job.spec.run.seed = seed;
      job.collective(Func::broadcast, kCount);
      with_sends(job, {{0, 1}});
      const Result result = job.run();
      for (const LinkLoad& link : result.network->hottest)
        if (link.bytes > 0) bytes[network][link.link] = static_cast<std::uint64_t>(link.bytes);
    }
    EXPECT_EQ(bytes[NetworkModel::flow], bytes[NetworkModel::loggp]) << seed;
    busiest.insert(bytes[NetworkModel::loggp].size());
  }
  EXPECT_EQ(busiest.size(), 2u);  // on one path, or on two
}

// Sprayed over more paths than a connection has messages, each link has the messages that it has
// message by message.
TEST(Flows, OfFewMessagesOverManyPathsCountThemAlike) {
  std::map<NetworkModel, std::vector<double>> messages, bytes;
  for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
    SmallJob job = job_of(8, 1, network);
    job.spec.cluster.topology = leaf_spine(2, 16, 1);
    for (const Routing& row : routings())
      if (row.per == Routing::Per::message) job.spec.cluster.topology.routing = &row;
    job.spec.fabric.framing = {.packet_payload = 4096, .per_packet = 78};
    with_sends(job, {{0, 4}, {0, 4}, {1, 5}});
    const Result result = job.run();
    for (const LinkTier& tier : result.network->tiers) {
      messages[network].push_back(tier.messages);
      bytes[network].push_back(tier.bytes);
      EXPECT_GT(tier.utilisation_mean, 0);
    }
    EXPECT_FALSE(result.network->hottest.empty());
  }
  EXPECT_EQ(messages[NetworkModel::flow], messages[NetworkModel::loggp]);
  EXPECT_EQ(bytes[NetworkModel::flow], bytes[NetworkModel::loggp]);
}

TEST(Flows, AreTheSameEveryTime) {
  SmallJob job = job_of(8, 2);
  job.spec.cluster.topology = leaf_spine(4, 2, 4);
  job.spec.run.jitter = 0.1;
  job.spec.run.iterations = 3;
  job.compute(5'000'000).collective(Func::all_reduce, 100'000).collective(Func::all_to_all, 5000);
  const Result a = job.run(), b = job.run();
  ASSERT_EQ(a.iterations.size(), 3u);
  ASSERT_EQ(b.iterations.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(a.iterations[i].seconds, b.iterations[i].seconds);
  EXPECT_EQ(ledger_text(a), ledger_text(b));
}

TEST(Flows, OfDifferentMembersWaitForEachOther) {
  SmallJob job = job_of(2, 1);
  with_sends(job, {});
  job.workload.roles[0].iterations[0].streams[0].push_back({.kind = Op::Kind::recv, .peer = 1});
  const Result result = job.run();
  EXPECT_NE(result.interrupted.find("waits for the other members"), std::string::npos)
      << result.interrupted;
}

}  // namespace
}  // namespace ghostrank
