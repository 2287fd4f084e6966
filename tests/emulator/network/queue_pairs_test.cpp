// Connections with several queue pairs: their ports and paths, what each link carries, and how much
// later a step ends where they collide.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/routing.h"
#include "emulator/fabric/wire.h"
#include "emulator/network/five_tuple.h"
#include "emulator/network/topology.h"
#include "emulator/traffic/traffic.h"
#include "tests/emulator/network/leaf_spine.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::kCount;
using testing::kLatency;
using testing::kNicRate;
using testing::kSerial;
using testing::leaf_spine;
using testing::SmallJob;
using testing::with_sends;

constexpr NetworkModel kModels[]{NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet};

SmallJob job_on(const TopologySpec& topology, int nodes, const QueuePairs& pairs,
                NetworkModel network = NetworkModel::loggp) {
  SmallJob job(nodes, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {kNicRate, 6 * kPicosPerMicro};
  job.spec.cluster.topology = topology;
  job.spec.fabric.network = network;
  job.spec.fabric.queue_pairs = pairs;
  job.spec.fabric.queues.buffer = 4 << 20;
  return job;
}

std::map<std::string, std::pair<double, double>> loads(const NetworkReport& network) {
  std::map<std::string, std::pair<double, double>> out;
  for (const LinkLoad& link : network.hottest) out[link.link] = {link.bytes, link.messages};
  return out;
}

double seconds_of(const SmallJob& job) {
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  return result.iterations.at(0).seconds;
}

// The connection of a transfer, and that of a collective of a group.
RoutedConnection transfer(int from, int to) {
  return {kPointToPoint, 0, WorldRank(from), WorldRank(to)};
}
RoutedConnection member(int group, int from, int to) {
  return {static_cast<std::uint32_t>(group), 0, WorldRank(from), WorldRank(to)};
}

TEST(QueuePairs, SplitMessagesInPartsOfAMultipleOf128Bytes) {
  const QueuePairs four{4, true};
  const auto parts = [&](std::uint64_t bytes) {
    std::vector<std::uint64_t> out;
    for (std::uint32_t i = 0; i < four.parts(bytes); ++i) out.push_back(four.part(bytes, i));
    return out;
  };
  using Parts = std::vector<std::uint64_t>;
  EXPECT_EQ(parts(0), Parts{0});
  EXPECT_EQ(parts(1), Parts{1});
  EXPECT_EQ(parts(128), Parts{128});
  EXPECT_EQ(parts(129), (Parts{128, 1}));
  EXPECT_EQ(parts(512), (Parts{128, 128, 128, 128}));
  EXPECT_EQ(parts(513), (Parts{256, 256, 1}));
  EXPECT_EQ(parts(4000), (Parts{1024, 1024, 1024, 928}));
  EXPECT_EQ((QueuePairs{4, false}.parts(4000)), 1u);
}

TEST(QueuePairs, HaveSourcePortsOfTheirOwnThatSwitchesHash) {
  const SmallJob one = job_on(leaf_spine(2, 8), 4, {}), eight = job_on(leaf_spine(2, 8), 4, {8});
  const Topology alone(one.spec), topology(eight.spec);
  const RoutedConnection connection = transfer(0, 2);
  const Nic from(0), to(2);
  EXPECT_EQ(hash_of(alone.five_tuple(connection, from, to, 0)),
            hash_of(topology.five_tuple(connection, from, to, 0)));
  EXPECT_EQ(alone.choose(connection, from, to), topology.choose(connection, from, to));
  std::set<std::uint16_t> ports;
  std::set<std::uint32_t> paths;
  for (std::uint32_t pair = 0; pair < 8; ++pair) {
    const FiveTuple tuple = topology.five_tuple(connection, from, to, pair);
    EXPECT_EQ(tuple.target_port, 4791);
    EXPECT_GE(tuple.source_port, 0xc000);
    ports.insert(tuple.source_port);
    const std::uint32_t path = topology.choose(connection, from, to, 0, pair);
    EXPECT_EQ(path, hash_of(tuple) % 8);
    paths.insert(path);
  }
  EXPECT_EQ(ports.size(), 8u);
  EXPECT_GE(paths.size(), 3u);
}

TEST(QueuePairs, OfARoutingThatChoosesForMessagesAreOne) {
  for (const Routing& routing : routings()) {
    TopologySpec spec = leaf_spine(2, 4);
    spec.routing = &routing;
    const Topology topology(job_on(spec, 4, {4}).spec);
    EXPECT_EQ(topology.queue_pairs().count, routing.per == Routing::Per::connection ? 4u : 1u)
        << routing.name;
  }
}

// Sixteen or twenty-four messages of a connection in every call: each pair carries as many, and the
// plan knows which. Of other libraries' messages it knows the parts.
TEST(QueuePairs, CarryWhatThePlanForesees) {
  for (const char* library : {"generic", "nccl-2.28", "gloo"})
    for (const std::uint32_t count : {1u, 2u, 4u})
      for (const bool split : {false, true}) {
        if (library != std::string("generic") && count > 1 && !split) continue;
        SmallJob job = job_on(leaf_spine(2, 2), 4, {count, split});
        job.spec.collectives.library = library;
        job.spec.run.iterations = 2;
        if (library == std::string("generic")) job.spec.collectives.slice_bytes = 10'000;
        job.collective(Func::all_reduce, 40'000).collective(Func::broadcast, 40'000);
        const TrafficPlan plan = plan_traffic(job.spec, job.workload);
        ASSERT_TRUE(plan.network);
        for (const NetworkModel model : kModels) {
          job.spec.fabric.network = model;
          const Result result = job.run();
          ASSERT_EQ(result.interrupted, "");
          EXPECT_EQ(loads(*result.network), loads(*plan.network))
              << library << ' ' << count << split << static_cast<int>(model);
          EXPECT_LE(plan.step_seconds_at_least, result.iterations.at(0).seconds);
        }
      }
}

// Eight flows from one leaf to the other, of forty messages each: a step takes as long as what
// the pairs' hashes put on the fullest link, and more pairs spread them more evenly.
TEST(QueuePairs, CollideLessTheMoreThereAre) {
  std::vector<double> sums;
  for (const std::uint32_t count : {1u, 2u, 4u, 8u}) {
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SmallJob job = job_on(leaf_spine(2, 8), 16, {count}, NetworkModel::flow);
      job.spec.run.seed = seed;
      job.spec.collectives.slice_bytes = 4 * kCount / 40;
      job.workload.groups.clear();
      for (int r = 0; r < 8; ++r)
        job.workload.groups.push_back({0, {WorldRank(r), WorldRank(r + 8)}});
      job.collective(Func::broadcast, kCount);
      const Topology topology(job.spec);
      std::vector<double> load(8);  // by spine, in flows
      for (int r = 0; r < 8; ++r)
        for (std::uint32_t pair = 0; pair < count; ++pair)
          load[topology.choose(member(r, r, r + 8), Nic(r), Nic(r + 8), 0, pair)] += 1.0 / count;
      const double fullest = *std::max_element(load.begin(), load.end());
      const double flow = (seconds_of(job) - kLatency) / kSerial;
      EXPECT_NEAR(flow, fullest, 1e-6) << count << ' ' << seed;
      job.spec.fabric.network = NetworkModel::loggp;
      EXPECT_NEAR((seconds_of(job) - kLatency) / kSerial, fullest, 0.12 * fullest);
      sum += flow;
    }
    sums.push_back(sum / 10);
  }
  EXPECT_NEAR(sums[0], 2.6, 0.5);  // expected load of the fullest of 8 bins with 8 balls
  for (std::size_t i = 1; i < sums.size(); ++i) EXPECT_LT(sums[i], sums[i - 1]);
  EXPECT_LT(sums[3], 1.8);
}

// The seed of a run in which two pairs of a connection take different spines.
std::uint64_t seed_of_two_paths(SmallJob job, const RoutedConnection& connection) {
  for (job.spec.run.seed = 1;; ++job.spec.run.seed) {
    const Topology topology(job.spec);
    if (topology.choose(connection, Nic(0), Nic(1), 0, 0) !=
        topology.choose(connection, Nic(0), Nic(1), 0, 1))
      return job.spec.run.seed;
  }
}

// Links have half of a NIC's rate. One message takes one of them or, in two parts, both; many
// messages in turn take both, too.
TEST(QueuePairs, GiveOneConnectionTheRateOfSeveralLinks) {
  TopologySpec spec = leaf_spine(2, 2);
  spec.uplink_bps = kNicRate / 2;
  for (const NetworkModel model : kModels)
    for (const auto& [pairs, messages, serials] :
         {std::tuple{QueuePairs{1}, 1, 2.0}, std::tuple{QueuePairs{2}, 1, 2.0},
          std::tuple{QueuePairs{2, true}, 1, 1.0}, std::tuple{QueuePairs{2}, 100, 1.0},
          std::tuple{QueuePairs{2, true}, 100, 1.0}}) {
      SmallJob job = job_on(spec, 2, pairs, model);
      job.spec.run.seed = seed_of_two_paths(job, member(0, 0, 1));
      job.spec.collectives.slice_bytes = 4 * kCount / messages;
      job.collective(Func::broadcast, kCount);
      job.spec.fabric.queues.control = &*std::find_if(
          congestion_controls().begin(), congestion_controls().end(),
          [](const CongestionControl& row) { return row.name == std::string_view("none"); });
      // A switch stores a packet before it sends it on.
      const double off = model == NetworkModel::packet ? 0.1 : 0.03;
      EXPECT_NEAR(seconds_of(job), kLatency + serials * kSerial, off * kSerial)
          << static_cast<int>(model) << ' ' << pairs.count << pairs.split << ' ' << messages;
    }
}

// A transfer of one message takes the pair whose turn it is, with every model of the network.
TEST(QueuePairs, TakeTurnsFromCallToCall) {
  std::map<std::string, std::pair<double, double>> first;
  for (const NetworkModel model : kModels) {
    SmallJob job = job_on(leaf_spine(2, 2), 2, {2}, model);
    job.spec.run.seed = seed_of_two_paths(job, transfer(0, 1));
    with_sends(job, {{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}});
    const Result result = job.run();
    ASSERT_EQ(result.interrupted, "");
    const auto carried = loads(*result.network);
    ASSERT_EQ(carried.size(), 4u);  // two up, two down
    std::multiset<double> messages;
    for (const auto& [link, load] : carried) messages.insert(load.second);
    EXPECT_EQ(messages, (std::multiset<double>{2, 2, 3, 3})) << static_cast<int>(model);
    if (first.empty()) first = carried;
    EXPECT_EQ(carried, first) << static_cast<int>(model);
  }
}

TEST(QueuePairs, BringRealDataWholeAndInOrder) {
  for (const char* library : {"generic", "nccl-2.28", "gloo", "openmpi-4.1"})
    for (const bool split : {false, true})
      for (const NetworkModel model : {NetworkModel::loggp, NetworkModel::packet}) {
        SmallJob job = job_on(leaf_spine(3, 4, 2), 6, {3, split}, model);
        job.spec.collectives.library = library;
        if (library == std::string("generic")) {
          job.spec.collectives.slice_bytes = 5'000;
          job.spec.collectives.credits = 4;
        }
        job.spec.run.verify = true;
        job.spec.run.iterations = 2;
        job.collective(Func::all_to_all, 1'001).collective(Func::all_reduce, 40'001);
        const Result result = job.run();
        ASSERT_EQ(result.interrupted, "") << library << split;
        ASSERT_TRUE(result.verify);
        EXPECT_GT(result.verify->checked_elements, 0u);
        EXPECT_EQ(result.verify->wrong_elements, 0u) << library << split << static_cast<int>(model);
      }
}

TEST(QueuePairs, PlayTheSameWithShards) {
  for (const bool split : {false, true})
    for (const NetworkModel model : {NetworkModel::loggp, NetworkModel::flow}) {
      SmallJob job = job_on(leaf_spine(4, 2, 2), 8, {4, split}, model);
      job.spec.collectives.library = "nccl-2.28";
      job.collective(Func::all_reduce, 300'000).collective(Func::all_to_all, 30'000);
      testing::expect_alike_with_shards(job, {2, 3});
    }
}

TEST(QueuePairs, PlayInMemoryAsWell) {
  SmallJob job(4, 1, FabricKind::memory);
  job.spec.cluster.topology = leaf_spine(2, 4);
  job.spec.fabric.queue_pairs = {4, true};
  job.spec.run.verify = true;
  job.collective(Func::all_reduce, 100'001);
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  EXPECT_EQ(result.verify->wrong_elements, 0u);
}

}  // namespace
}  // namespace ghostrank
