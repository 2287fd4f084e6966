// Multicast schemes in virtual time: closed forms of idle networks, bytes on NICs and links, real
// data on random fabrics, and the broadcasts of K-FAC's inverses.
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/routing.h"
#include "emulator/traffic/cluster.h"
#include "profiles/error.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/schemes/scale.h"
#include "tests/emulator/support.h"
#include "tests/one_of.h"

namespace ghostrank {
namespace {

using test::one_of;
using testing::kSwitchedNicRate;
using testing::SmallJob;

constexpr double kLatency = 2e-6;
constexpr std::uint64_t kPayload = 1024;  // bytes of a packet of float32
double at_nic(std::uint64_t bytes) { return static_cast<double>(bytes) * 8 / kSwitchedNicRate; }

SmallJob job_of(int nodes, int gpus, const std::string& scheme) {
  SmallJob job(nodes, gpus, FabricKind::virtual_time);
  job.spec.collectives.algorithm(Func::broadcast) = scheme;
  job.spec.cluster.nic = {kSwitchedNicRate, 2 * kPicosPerMicro};
  return job;
}

SmallJob broadcast_of(int nodes, const std::string& scheme, std::uint64_t packets) {
  SmallJob job = job_of(nodes, 1, scheme);
  job.collective(Func::broadcast, packets * 256);
  return job;
}

double seconds_of(const SmallJob& job) {
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  return result.iterations.at(0).seconds;
}

void expect_exactly(const SmallJob& job, double bound, const std::string& what) {
  EXPECT_NEAR(seconds_of(job) / bound, 1, 1e-3) << what;
}

TopologySpec fabric(TopologySpec::Kind kind) {
  TopologySpec spec;
  spec.kind = kind;
  spec.leaves = 4;
  spec.spines = 2;
  spec.pods = kind == TopologySpec::Kind::fat_tree ? 2 : 0;
  spec.cores = kind == TopologySpec::Kind::fat_tree ? 4 : 0;
  return spec;
}

// ---- Time ----

// The root's NIC is the bottleneck; the last run of packets then passes an agent, whose credit
// comes behind it. With one receiver the agent has nobody else to serve.
TEST(Multicast, OfOrcaTakesTheRootsBytesAndAnAgent) {
  for (const int nodes : {2, 3, 5, 9, 40}) {
    for (const std::uint64_t packets : {1, 7, 1'000, 20'480}) {
      const std::uint64_t run = packets < 2048 ? 1 : packets / 1024;
      const bool forwards = nodes > 2;
      const double bound = at_nic(packets * (kPayload + 20)) + 2 * kLatency +
                           (forwards ? at_nic(run * (kPayload + 4)) : 0) + at_nic(1);
      expect_exactly(broadcast_of(nodes, "orca", packets), bound,
                     std::to_string(nodes) + " nodes, " + std::to_string(packets) + " packets");
    }
  }
}

TEST(Multicast, OfElmoTakesTheRootsBytesAndOfUnicastThemForEachReceiver) {
  for (const int nodes : {2, 5, 9})
    for (const std::uint64_t packets : {1, 1'000, 20'480}) {
      // One leaf: a rule of the type, ports down and up, and two marks.
      // Credits of one byte each come together from Elmo's receivers, the last one alone else.
      const double copies = nodes - 1, back = 2 * kLatency;
      expect_exactly(
          broadcast_of(nodes, "elmo", packets),
          at_nic(packets * (kPayload + (1 + 24 + 24 + 2 + 7) / 8)) + back + copies * at_nic(1),
          "elmo");
      expect_exactly(broadcast_of(nodes, "unicast", packets),
                     copies * at_nic(packets * kPayload) + back + at_nic(1), "unicast");
    }
}

// Four receivers: as published four times as long, less the labels.
TEST(Multicast, UnicastTakesOrcasTimeForEachReceiver) {
  for (const int receivers : {1, 2, 4, 8}) {
    const double ratio = seconds_of(broadcast_of(receivers + 1, "unicast", 20'000)) /
                         seconds_of(broadcast_of(receivers + 1, "orca", 20'000));
    EXPECT_NEAR(ratio / receivers, 1, 0.05) << receivers;
  }
}

// A ring's chain of slices is as fast as a multicast without headers, but for its length.
TEST(Multicast, AChainTakesOneTensorToo) {
  SmallJob chain = broadcast_of(8, "generic/chain", 20'000);
  chain.spec.collectives.slice_bytes = 16 << 10;
  EXPECT_NEAR(seconds_of(broadcast_of(8, "orca", 20'000)) / seconds_of(chain), 1044.0 / 1024, 0.02);
}

// ---- Bytes ----

// Every copy takes a link once, on the same links that the plan counts.
TEST(Multicast, PlansCountWhatNicsAndLinksCarry) {
  using Kind = TopologySpec::Kind;
  for (const Kind kind : {Kind::nonblocking, Kind::leaf_spine, Kind::fat_tree})
    for (const char* scheme : {"orca", "elmo", "unicast"})
      for (const int nodes : {4, 11, 16}) {
        SmallJob job = job_of(nodes, 1, scheme);
        job.spec.cluster.topology = kind == Kind::nonblocking ? TopologySpec{} : fabric(kind);
        job.collective(Func::broadcast, 40'000, DataType::int32, 3)
            .collective(Func::broadcast, 1'300, DataType::bfloat16, 0);
        const TrafficPlan plan = plan_traffic(job.spec, job.workload);
        const Result result = job.run();
        SCOPED_TRACE(std::string(scheme) + " on " + std::to_string(nodes) + ", kind " +
                     std::to_string(static_cast<int>(kind)));
        ASSERT_EQ(result.interrupted, "");
        EXPECT_EQ(plan.collectives.front().estimate, "");
        std::map<std::pair<Nic, Nic>, double> planned, played;
        for (const PairTraffic& p : plan.pairs) planned[{p.source_nic, p.target_nic}] = p.bytes;
        for (const PairTraffic& p : result.pairs) played[{p.source_nic, p.target_nic}] = p.bytes;
        EXPECT_EQ(planned, played);
        EXPECT_GE(result.iterations[0].seconds, plan.step_seconds_at_least * (1 - 1e-9));
        ASSERT_TRUE(plan.network.has_value() == (kind != Kind::nonblocking));
        if (!plan.network) continue;
        for (std::size_t i = 0; i < plan.network->tiers.size(); ++i) {
          EXPECT_EQ(plan.network->tiers[i].bytes, result.network->tiers[i].bytes) << i;
          EXPECT_EQ(plan.network->tiers[i].messages, result.network->tiers[i].messages) << i;
        }
      }
}

// Root on leaf 0 of 4, one packet: up once, down once to each other leaf, and a credit from each
// back.
TEST(Multicast, ALinkCarriesOneCopy) {
  SmallJob job = job_of(16, 1, "orca");
  job.spec.cluster.topology = fabric(TopologySpec::Kind::leaf_spine);
  job.collective(Func::broadcast, 256, DataType::int32);
  const Result result = job.run();
  ASSERT_TRUE(result.network);
  EXPECT_EQ(result.network->tiers[0].bytes, (kPayload + 20) + 3 * 1);
  EXPECT_EQ(result.network->tiers[1].bytes, 3 * (kPayload + 20) + 3 * 1);
  // Bytes into NICs: agents of 4 racks, the other 2 or 3 members of each, credits.
  double bytes = 0;
  for (const PairTraffic& p : result.pairs) bytes += p.bytes;
  EXPECT_EQ(bytes, 4 * (kPayload + 20) + (2 + 3 * 3) * (kPayload + 4) + 4);
}

// What Elmo's header takes beyond Orca's grows with the racks.
TEST(Multicast, ElmosHeaderGrowsWithTheRacksAndOrcasDoesNot) {
  double before = 0;
  for (const int leaves : {2, 4, 8}) {
    const auto sent = [&](const char* scheme) {
      SmallJob job = job_of(16, 1, scheme);
      job.spec.cluster.topology = fabric(TopologySpec::Kind::leaf_spine);
      job.spec.cluster.topology.leaves = leaves;
      job.spec.cluster.topology.spines = 1;
      job.collective(Func::broadcast, 256'000, DataType::int32);
      return seconds_of(job);
    };
    EXPECT_NEAR(sent("orca") / (at_nic(1000 * (kPayload + 20)) + 2 * kLatency + at_nic(kPayload)),
                1, 1e-3)
        << leaves;
    const double elmo = sent("elmo");
    EXPECT_GT(elmo, before);
    before = elmo;
  }
}

// SPD-KFAC broadcasts every inverse from the rank that computed it.
TEST(Multicast, CarriesTheInversesOfKfac) {
  std::map<std::string, double> seconds;
  for (const std::string scheme : {"chain", "orca", "elmo", "unicast"}) {
    const LoadedJob job = load_job(
        "resnet50-kfac",
        {"cluster.nodes=4", "run.warmup=0", "run.iterations=1", "collectives.broadcast=" + scheme});
    const Workload workload = plan_workload(job.spec);
    const TrafficPlan plan = plan_traffic(job.spec, workload);
    Observer nobody;
    const auto control = Control::meet(World{});
    const Result result = run_job(job, workload, *control, {}, nobody);
    ASSERT_EQ(result.interrupted, "") << scheme;
    double bytes = 0;
    for (const PairTraffic& p : result.pairs) bytes += p.bytes;
    EXPECT_EQ(static_cast<double>(plan.wire_bytes), bytes) << scheme;
    seconds[scheme] = result.iterations.at(0).seconds;
  }
  EXPECT_GT(seconds["unicast"], seconds["orca"]);
  EXPECT_GT(seconds["orca"], 0.9 * seconds["chain"]);
}

// ---- Whatever the fabric ----

TEST(Multicast, RandomJobsLeaveRealDataRight) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const std::string scheme = one_of<const char*>(random, {"orca", "orca", "elmo", "unicast"});
    SmallJob job = job_of(one_of(random, {1, 2, 3, 6, 13, 50}), one_of(random, {1, 2, 4}), scheme);
    JobSpec& spec = job.spec;
    if (spec.cluster.gpus_per_node > 1) spec.cluster.nics_per_node = one_of(random, {1, 2});
    spec.cluster.nic.rate_bps = one_of(random, {0.0, 1e10, 4e11});
    spec.cluster.intra_node.rate_bps = one_of(random, {0.0, 1e12});
    TopologySpec& topology = spec.cluster.topology;
    using Kind = TopologySpec::Kind;
    topology.kind = one_of(random, {Kind::nonblocking, Kind::leaf_spine, Kind::rail_optimised,
                                    Kind::rail_only, Kind::fat_tree});
    if (topology.kind != Kind::nonblocking) {
      topology.spines = one_of(random, {0, 1, 3});
      topology.leaves = one_of(random, {0, 4, 9});
      topology.pods = topology.kind == Kind::fat_tree ? one_of(random, {0, 2, 3}) : 0;
      topology.oversubscription = one_of(random, {1, 3});
      topology.placement =
          one_of(random, {TopologySpec::Placement::packed, TopologySpec::Placement::random});
      topology.routing = &routings()[random() % routings().size()];
    }
    spec.collectives.in_switch.slots = one_of(random, {1, 7, 512});
    spec.collectives.in_switch.packet_elements = one_of(random, {32, 256});
    if (random() % 3 == 0) spec.fabric.framing = {1448, 90, 0};
    spec.run.verify = true;
    spec.run.iterations = 2;
    for (int calls = 0; calls < 3; ++calls) {
      const auto root =
          static_cast<GroupRank>(random() % static_cast<unsigned>(job.workload.ranks));
      job.collective(Func::broadcast, one_of<std::uint64_t>(random, {1, 300, 2'000, 300'000}),
                     one_of(random, {DataType::uint8, DataType::float32, DataType::bfloat16}),
                     root);
    }
    SCOPED_TRACE("job " + std::to_string(seed) + ": " + scheme + ", " +
                 std::to_string(spec.cluster.nodes) + " x " +
                 std::to_string(spec.cluster.gpus_per_node) + ", kind " +
                 std::to_string(static_cast<int>(topology.kind)));
    const Result one = job.run();
    ASSERT_EQ(one.interrupted, "");
    EXPECT_GT(one.verify->checked_elements, 0u);
    ASSERT_EQ(one.verify->wrong_elements, 0u);
    const TrafficPlan plan = plan_traffic(spec, job.workload);
    double bytes = 0;
    for (const PairTraffic& p : one.pairs) bytes += p.bytes;
    EXPECT_EQ(static_cast<double>(plan.wire_bytes), bytes);
    spec.run.shards = 3;
    const Result three = job.run();
    EXPECT_EQ(one.iterations[1].seconds, three.iterations[1].seconds);
    EXPECT_EQ(testing::ledger_text(one), testing::ledger_text(three));
    EXPECT_EQ(testing::network_text(one), testing::network_text(three));
  }
}

TEST(Multicast, InMemoryLeavesRealDataRight) {
  for (const char* scheme : {"orca", "elmo", "unicast"}) {
    SmallJob job = job_of(4, 2, scheme);
    job.spec.fabric.kind = FabricKind::memory;
    job.spec.dilation = 20;
    job.spec.run.verify = true;
    job.collective(Func::broadcast, 30'000, DataType::float32, 5);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->wrong_elements, 0u);
  }
}

// A real network has no switch that copies by these labels.
TEST(Multicast, OfSwitchesIsRefusedOnARealNetwork) {
  for (const char* scheme : {"orca", "elmo"}) {
    SmallJob job = job_of(4, 1, scheme);
    job.spec.fabric.kind = FabricKind::ofi;
    job.collective(Func::broadcast, 1000);
    try {
      Cluster(job.spec, job.workload, 1);
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("needs switches that copy its packets"),
                std::string::npos)
          << error.what();
    }
  }
  SmallJob job = job_of(4, 1, "unicast");
  job.spec.fabric.kind = FabricKind::ofi;
  job.collective(Func::broadcast, 1000);
  EXPECT_NO_THROW(Cluster(job.spec, job.workload, 1));
}

}  // namespace
}  // namespace ghostrank
