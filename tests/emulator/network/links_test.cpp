// Links between switches: closed forms, bytes per link, routings, and results that do not depend on
// the number of shards.
#include "emulator/network/links.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/routing.h"
#include "emulator/network/flowlets.h"
#include "emulator/network/topology.h"
#include "emulator/shard/on_the_way/in_order.h"
#include "profiles/error.h"
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

const Routing* routing(std::string_view name) {
  for (const Routing& row : routings())
    if (row.name == name) return &row;
  return nullptr;
}

SmallJob job_on(const TopologySpec& topology, int nodes, int gpus = 1,
                FabricKind kind = FabricKind::virtual_time) {
  SmallJob job(nodes, gpus, kind);
  job.spec.cluster.nic = {kNicRate, 6 * kPicosPerMicro};
  job.spec.cluster.topology = topology;
  return job;
}

double seconds_of(const SmallJob& job) { return job.run().iterations.at(0).seconds; }

// ---- Closed forms ----

TEST(Links, OfMoreThanEnoughRateCostNothing) {
  for (const Func func : {Func::all_reduce, Func::all_to_all, Func::broadcast}) {
    TopologySpec unlimited = leaf_spine(4, 3);
    unlimited.uplink_bps = 0;
    const double without = seconds_of(job_on({}, 8, 2).collective(func, 30'000));
    EXPECT_EQ(seconds_of(job_on(unlimited, 8, 2).collective(func, 30'000)), without);
  }
}

// Nodes 0 and 1 on one leaf send to nodes 2 and 3 on the other.
TEST(Links, TwoFlowsOnOneLinkTakeTurns) {
  SmallJob shared = job_on(leaf_spine(2, 1, 2), 4);
  const Result result = with_sends(shared, {{0, 2}, {1, 3}}).run();
  EXPECT_NEAR(result.iterations[0].seconds, kLatency + 2 * kSerial, 1e-12);
  ASSERT_TRUE(result.network);
  EXPECT_NEAR(result.network->tiers[0].longest_wait_s.value_or(0), kSerial, 1e-12);
  EXPECT_NEAR(result.network->tiers[0].mean_wait_s.value_or(0), kSerial / 2, 1e-12);
  EXPECT_NEAR(result.network->hottest[0].mean_wait_s.value_or(0), kSerial / 2, 1e-12);
  EXPECT_NEAR(result.network->hottest[0].utilisation, 2 * kSerial / (kLatency + 2 * kSerial), 1e-9);
  EXPECT_EQ(result.network->hottest[0].link, "leaf0-spine0");
}

TEST(Links, TwiceAsFastAsNicsTwoFlowsDoNotMeet) {
  SmallJob job = job_on(leaf_spine(2, 1), 4);
  EXPECT_NEAR(seconds_of(with_sends(job, {{0, 2}, {1, 3}})), kLatency + kSerial, 1e-12);
  SmallJob three = job_on(leaf_spine(2, 1, 1.5), 6);  // a link of two NICs' rate, shared by three
  EXPECT_NEAR(seconds_of(with_sends(three, {{0, 3}, {1, 4}, {2, 5}})), kLatency + 1.5 * kSerial,
              1e-12);
}

// The link is slower than the NICs, and a message passes all three at once.
TEST(Links, CutThrough) {
  SmallJob job = job_on(leaf_spine(2, 1, 4), 2);
  EXPECT_NEAR(seconds_of(with_sends(job, {{0, 1}})), kLatency + 4 * kSerial, 1e-12);
}

// Each sends over a link of a tenth of the NICs' rate, so one NIC takes ten in at once; another
// sender's short message finds room, too.
TEST(Links, OfLowRatesFillANicTogether) {
  TopologySpec slow = leaf_spine(12, 1);
  std::vector<std::pair<int, int>> pairs;
  for (int r = 0; r < 10; ++r) {
    slow.degraded.emplace_back("leaf" + std::to_string(r) + "-spine0", kNicRate / 10);
    pairs.push_back({r, 11});
  }
  SmallJob job = job_on(slow, 12);
  EXPECT_NEAR(seconds_of(with_sends(job, pairs)), kLatency + 10 * kSerial, 1e-12);
  SmallJob eleven = job_on(slow, 12);
  pairs.push_back({10, 11});  // at the NICs' rate
  EXPECT_NEAR(seconds_of(with_sends(eleven, pairs)), kLatency + 11 * kSerial, 0.2 * kSerial);
}

TEST(Links, UnderOneLeafAreNotUsed) {
  SmallJob job = job_on(leaf_spine(2, 1, 100), 4);
  const Result result = with_sends(job, {{0, 1}, {3, 2}}).run();
  EXPECT_NEAR(result.iterations[0].seconds, kLatency + kSerial, 1e-12);
  EXPECT_EQ(result.network->tiers[0].messages, 0);
}

TEST(Links, AddTheirLatencyToTheNics) {
  TopologySpec far = leaf_spine(2, 1);
  far.link_latency = 10 * kPicosPerMicro;
  SmallJob job = job_on(far, 2);
  EXPECT_NEAR(seconds_of(with_sends(job, {{0, 1}})), kLatency + 20e-6 + kSerial, 1e-12);
  SmallJob beside = job_on(far, 4);
  EXPECT_NEAR(seconds_of(with_sends(beside, {{0, 1}})), kLatency + kSerial, 1e-12);
}

// n nodes of one leaf send to the other leaf: `oversubscription` NICs' worth of traffic per link.
TEST(Links, APermutationTakesTheTimeOfTheBusiestLink) {
  for (const double oversubscription : {1.0, 2.0, 4.0, 8.0}) {
    SmallJob job = job_on(leaf_spine(2, 1, oversubscription), 16);
    std::vector<std::pair<int, int>> pairs;
    for (int r = 0; r < 8; ++r) pairs.push_back({r, 15 - r});
    EXPECT_NEAR(seconds_of(with_sends(job, pairs)), kLatency + oversubscription * kSerial, 1e-12);
  }
}

TEST(Links, AnIncastFromAnotherLeafIsServedAtTheSlowerOfLinkAndNic) {
  for (const double oversubscription : {1.0, 8.0, 16.0}) {
    SmallJob job = job_on(leaf_spine(2, 1, oversubscription), 16);
    std::vector<std::pair<int, int>> pairs;
    for (int r = 0; r < 8; ++r) pairs.push_back({r, 8});
    const double each = std::max(1.0, oversubscription / 8) * kSerial;
    EXPECT_NEAR(seconds_of(with_sends(job, pairs)), kLatency + 8 * each, 1e-12);
  }
}

// Both edges between the leaves are four times as slow as the others and set the pace.
TEST(Links, ARingTakesTheTimeOfItsSlowestEdge) {
  SmallJob job = job_on(leaf_spine(2, 1, 16), 8);  // a link of a quarter of a NIC's rate
  job.spec.cluster.nic.latency = 3;
  job.collective(Func::all_reduce, 8 * kCount);
  const double steps = 2 * 7, busiest = steps * 4 * kSerial;
  const double measured = seconds_of(job);
  EXPECT_GE(measured, busiest);
  EXPECT_LE(measured, busiest + 8 * kSerial);  // the pipeline's fill
}

TEST(Links, AnAllToAllTakesTheTimeOfTheBusiestLink) {
  SmallJob job = job_on(leaf_spine(4, 1, 8), 16);  // 4 nodes a leaf, a link of half a NIC's rate
  job.spec.cluster.nic.latency = 3;
  job.collective(Func::all_to_all, kCount);
  const double busiest = 4 * 12 * 2 * kSerial;  // 4 nodes to 12 others
  const double measured = seconds_of(job);
  EXPECT_GE(measured, busiest);
  EXPECT_LE(measured, busiest * 1.15);
}

TEST(Links, OfARailCarryWhatChangesRails) {
  TopologySpec spec = leaf_spine(0, 0);
  spec.kind = TopologySpec::Kind::rail_optimised;
  SmallJob job = job_on(spec, 4, 2);
  job.spec.fabric.inside_node = InsideNode::messages;
  // Rank 2r + i is on rail i.
  const Result result = with_sends(job, {{0, 2}, {1, 3}, {4, 7}}).run();
  EXPECT_EQ(result.network->tiers[0].messages, 1);
  EXPECT_EQ(result.network->tiers[1].messages, 1);
  EXPECT_EQ(result.network->hottest[0].link.substr(0, 5), "leaf0");
}

// ---- What goes over links ----

// Bytes of the pairs whose NICs are on different leaves.
double between_leaves(const Result& result, const SmallJob& job) {
  const Topology topology(job.spec);
  double bytes = 0;
  for (const PairTraffic& pair : result.pairs)
    if (topology.paths(pair.source_nic, pair.target_nic) > 0) bytes += pair.bytes;
  return bytes;
}

TEST(Links, CarryWhatTheLedgerSaysAndThePlanForesees) {
  for (const char* name : {"ecmp", "static", "spray", "flowlet"}) {
    TopologySpec spec = leaf_spine(3, 4, 2);
    spec.routing = routing(name);
    SmallJob job = job_on(spec, 6, 2);
    job.spec.fabric.framing = {1448, 90, 0};
    job.spec.run.iterations = 2;
    job.collective(Func::all_to_all, 1000).collective(Func::all_reduce, 4096);
    const Result result = job.run();
    const TrafficPlan plan = plan_traffic(job.spec, job.workload);
    ASSERT_TRUE(result.network && plan.network);
    const double expected = between_leaves(result, job);
    EXPECT_GT(expected, 0);
    for (std::size_t tier = 0; tier < 2; ++tier) {
      EXPECT_EQ(result.network->tiers[tier].bytes, expected) << name;
      EXPECT_EQ(plan.network->tiers[tier].bytes, expected) << name;
      EXPECT_EQ(result.network->tiers[tier].messages, plan.network->tiers[tier].messages);
    }
    // A plan spreads the messages of others evenly over all paths.
    if (spec.routing->per != Routing::Per::connection) continue;
    double run = 0, planned = 0;
    for (const LinkLoad& l : result.network->hottest) run = std::max(run, l.bytes);
    for (const LinkLoad& l : plan.network->hottest) planned = std::max(planned, l.bytes);
    EXPECT_EQ(run, planned) << name;
  }
}

// The three of leaf 0 carry what leaves it.
TEST(Links, ThatFailedAreOfNoTier) {
  TopologySpec spec = leaf_spine(2, 4, 2);
  spec.failed = {"leaf0-spine1"};
  SmallJob job = job_on(spec, 4, 1);
  job.collective(Func::all_reduce, 1'000'000);
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  ASSERT_TRUE(plan.network);
  for (const LinkTier& tier : plan.network->tiers) EXPECT_EQ(tier.links, 7u) << tier.name;
  for (const NetworkModel model : {NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet}) {
    job.spec.fabric.network = model;
    const Result result = job.run();
    ASSERT_TRUE(result.network);
    for (const LinkTier& tier : result.network->tiers)
      if (tier.name == "leaf-spine" || tier.name == "spine-leaf") {
        EXPECT_EQ(tier.links, 7u) << static_cast<int>(model);
        double busy = 0;
        for (const LinkLoad& link : result.network->hottest)
          if (link.link.starts_with("leaf") == tier.name.starts_with("leaf"))
            busy += link.utilisation;
        EXPECT_NEAR(tier.utilisation_mean, busy / 7, 1e-9) << static_cast<int>(model);
      }
  }
}

// Gloo's receivers permit every message: a permission crosses the links and is no message.
TEST(Links, CountNoPermissions) {
  SmallJob job = job_on(leaf_spine(4, 1), 4);
  job.spec.collectives.library = "gloo";
  job.collective(Func::all_reduce, 1'000'000);
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  ASSERT_TRUE(plan.network);
  for (const NetworkModel model : {NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet}) {
    job.spec.fabric.network = model;
    const Result result = job.run();
    ASSERT_TRUE(result.network);
    std::map<std::string, double> messages;
    for (const LinkTier& t : result.network->tiers) messages[t.name] = t.messages;
    for (const LinkTier& t : plan.network->tiers)
      EXPECT_EQ(messages[t.name], t.messages) << t.name << ' ' << static_cast<int>(model);
    EXPECT_EQ(result.network->hottest.at(0).messages, plan.network->hottest.at(0).messages);
  }
}

TEST(Links, ThatAreTooSlowAreInTheLeastTimeOfAStep) {
  SmallJob job = job_on(leaf_spine(2, 1, 32), 8);
  job.collective(Func::all_reduce, 8'000'000);
  const double least = plan_traffic(job.spec, job.workload).step_seconds_at_least;
  const double measured = seconds_of(job);
  EXPECT_LE(least, measured);
  EXPECT_GE(least, 0.8 * measured);
}

// ---- Routings ----

// Eight flows from one leaf to the other, over eight spines.
SmallJob permutation_over_spines(const char* name) {
  TopologySpec spec = leaf_spine(2, 8);
  spec.routing = routing(name);
  SmallJob job = job_on(spec, 16);
  std::vector<std::pair<int, int>> pairs;
  for (int r = 0; r < 8; ++r) pairs.push_back({r, r + 8});
  return with_sends(job, pairs);
}

TEST(Routing, ByHashCollidesWhereByTargetDoesNot) {
  EXPECT_NEAR(seconds_of(permutation_over_spines("static")), kLatency + kSerial, 1e-12);
  std::vector<double> times;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SmallJob job = permutation_over_spines("ecmp");
    job.spec.run.seed = seed;
    const double flows = (seconds_of(job) - kLatency) / kSerial;  // on the busiest link
    EXPECT_NEAR(flows, std::round(flows), 1e-6);
    times.push_back(flows);
  }
  double sum = 0;
  for (const double flows : times) sum += flows;
  EXPECT_GE(*std::max_element(times.begin(), times.end()), 3);
  EXPECT_NEAR(sum / 20, 2.6, 0.5);  // expected load of the fullest of 8 bins with 8 balls
}

// Rank r sends to the one half of the job away, all at the same time.
TEST(Routing, ByTargetLetsShiftsCollideNowhere) {
  using Kind = TopologySpec::Kind;
  for (const Kind kind : {Kind::leaf_spine, Kind::fat_tree, Kind::rail_optimised})
    for (const auto placement :
         {TopologySpec::Placement::packed, TopologySpec::Placement::spread}) {
      TopologySpec spec;
      spec.kind = kind;
      spec.placement = placement;
      spec.leaves = 8;
      if (kind == Kind::fat_tree) spec.pods = 2;
      spec.routing = routing("static");
      SmallJob job = job_on(spec, 16, 4);
      std::vector<std::pair<int, int>> pairs;
      for (int r = 0; r < 32; ++r) pairs.push_back({r, r + 32});
      EXPECT_NEAR(seconds_of(with_sends(job, pairs)), kLatency + kSerial, 1e-12)
          << static_cast<int>(kind) << static_cast<int>(placement);
    }
}

// One connection with many messages: alternating over both spines gives it twice the rate.
TEST(Routing, MessageByMessageUsesEveryWayAndKeepsTheOrder) {
  const auto step = [](const char* name) {
    TopologySpec spec = leaf_spine(2, 2);
    spec.uplink_bps = kNicRate / 2;
    spec.routing = routing(name);
    SmallJob job = job_on(spec, 2);
    job.spec.collectives.slice_bytes = 10'000;
    job.collective(Func::broadcast, 100 * kCount);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    return result.iterations.at(0).seconds;
  };
  EXPECT_NEAR(step("ecmp"), 200 * kSerial, 2 * kSerial);
  EXPECT_NEAR(step("spray"), 100 * kSerial, 2 * kSerial);
}

// Eight bursts of three messages of one connection, with pauses in between, over eight spines:
// with every model of the network each burst draws the same spine, if pauses are longer than the
// gap; else all take one.
TEST(Routing, ByFlowletDrawsAWayForEachBurst) {
  const auto carried = [](NetworkModel model, Picoseconds gap) {
    TopologySpec spec = leaf_spine(2, 8);
    spec.routing = routing("flowlet");
    spec.flowlet_gap = gap;
    spec.uplink_bps = kNicRate;  // a burst is over when its sender has sent it
    SmallJob job = job_on(spec, 2);
    job.spec.fabric.network = model;
    job.spec.fabric.queues.buffer = 4 << 20;
    Op pause;
    pause.duration = 500 * kPicosPerMicro;
    with_sends(job, {{0, 1}, {0, 1}, {0, 1}});
    for (Role& role : job.workload.roles) {
      OpList& ops = role.iterations[0].streams[0];
      const OpList burst = ops;
      for (int n = 1; n < 8; ++n) {
        ops.push_back(pause);
        for (const Op& op : burst) ops.push_back(op);
      }
    }
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    std::map<std::string, double> bytes;
    for (const LinkLoad& link : result.network->hottest) bytes[link.link] = link.bytes;
    return bytes;
  };
  const double all = 24 * 4 * static_cast<double>(kCount);
  const auto drawn = carried(NetworkModel::loggp, 100 * kPicosPerMicro);
  EXPECT_GE(drawn.size(), 2u * 4);  // up and down
  for (const auto& [link, bytes] : drawn) EXPECT_EQ(std::fmod(bytes, all / 8), 0) << link;
  EXPECT_EQ(carried(NetworkModel::flow, 100 * kPicosPerMicro), drawn);
  EXPECT_EQ(carried(NetworkModel::packet, 100 * kPicosPerMicro), drawn);
  for (const NetworkModel model : {NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet}) {
    const auto one = carried(model, kPicosPerMilli);
    EXPECT_EQ(one.size(), 2u);
    for (const auto& [link, bytes] : one) EXPECT_EQ(bytes, all) << link;
  }
}

TEST(Flowlets, EndWithTheGap) {
  Flowlets flowlets(10);
  const RoutedConnection c{1, 2, WorldRank(3), WorldRank(4)};
  const RoutedConnection other{1, 2, WorldRank(3), WorldRank(5)};
  EXPECT_EQ(flowlets.present(c), 0u);
  EXPECT_EQ(flowlets.number(c, 100, 120), 1u);
  EXPECT_EQ(flowlets.number(c, 130, 140), 1u);
  EXPECT_EQ(flowlets.number(other, 500, 600), 1u);
  EXPECT_EQ(flowlets.number(c, 151, 160), 2u);
  flowlets.lasts(c, 200);
  EXPECT_EQ(flowlets.number(c, 210, 220), 2u);
  EXPECT_EQ(flowlets.number(c, 231, 240), 3u);
  EXPECT_EQ(flowlets.present(c), 3u);
}

TEST(Routing, ThatChoosesAWayThereIsNotIsNamed) {
  static constexpr Routing kWrong{"wrong", [](const RoutedFlow& flow) { return flow.paths; }};
  TopologySpec spec = leaf_spine(2, 2);
  spec.routing = &kWrong;
  SmallJob job = job_on(spec, 2);
  job.spec.sources["cluster.topology.routing"] = "job.yaml:9:5";
  try {
    with_sends(job, {{0, 1}}).run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("job.yaml:9:5: cluster.topology.routing: wrong chose path 2 of 2"),
              std::string::npos)
        << error.what();
    EXPECT_EQ(error.exit_code(), 2);
  }
}

TEST(RailsAlone, NameTheLineOfTheJobWhereNoPathLeads) {
  SmallJob job(2, 2, FabricKind::virtual_time);
  job.spec.cluster.topology.kind = TopologySpec::Kind::rail_only;
  job.spec.sources["cluster.topology.kind"] = "job.yaml:7:22";
  try {
    with_sends(job, {{0, 3}}).run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what())
                  .find("job.yaml:7:22: cluster.topology: no path leads from n0.nic0 to n1.nic1; "),
              0U)
        << error.what();
  }
}

// Messages 1 to 4 of a connection arrive in another order.
TEST(InOrder, GivesOnWhatCameInTheOrderInWhichItWasSent) {
  InOrder connections;
  const RoutedConnection c{1, 2, WorldRank(3), WorldRank(4)};
  const RoutedConnection other{1, 2, WorldRank(3), WorldRank(5)};
  EXPECT_EQ(connections.number(c), 1u);
  EXPECT_EQ(connections.number(c), 2u);
  EXPECT_EQ(connections.number(other), 1u);
  std::string order;
  const auto come = [&](const RoutedConnection& connection, std::uint32_t number, Picoseconds at) {
    Event e;
    e.t.at = at;
    e.actor = number;
    connections.arrived(connection, number, e, [&](const Event& next) {
      order += std::to_string(next.actor) + "@" + std::to_string(next.t.at) + " ";
    });
  };
  come(c, 3, 10);
  come(c, 2, 20);
  come(other, 1, 25);
  EXPECT_EQ(order, "1@25 ");
  come(c, 1, 30);
  come(c, 4, 5);
  EXPECT_EQ(order, "1@25 1@30 2@30 3@30 4@30 ");
}

TEST(Link, GivesCopiesOfANoteOnePlace) {
  Link link;
  LastNote note;
  const auto pass = [&](std::uint64_t number) {
    return note.pass(number, 0, [&] { return link.pass({0, 10}, 10, 100); });
  };
  EXPECT_EQ(pass(7).tail, 10);
  EXPECT_EQ(pass(7).tail, 10);
  EXPECT_EQ(pass(8).tail, 20);
  EXPECT_EQ(link.pass({0, 10}, 10, 100).tail, 30);
  EXPECT_EQ(link.pass({0, 10}, 10, 100).tail, 40);
  EXPECT_EQ(link.count().messages, 4u);
  EXPECT_EQ(link.count().bytes, 400u);
  EXPECT_EQ(link.count().longest_wait, 30);
}

// ---- Stops ----

class StopsAfterAnIteration final : public Observer {
 public:
  explicit StopsAfterAnIteration(Control& control) : control_(control) {}
  void on_iteration(int, const IterationReport&) override {
    control_.request_stop(Stop::interrupted);
  }

 private:
  Control& control_;
};

// The second iteration, in which the run is stopped, lasts far longer than the first.
TEST(Links, AreBusyForNoLongerThanAStoppedRunPlayed) {
  for (const NetworkModel model : {NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet}) {
    SmallJob job = job_on(leaf_spine(2, 1, 2), 4);
    job.spec.fabric.network = model;
    job.spec.run.iterations = 2;
    job.collective(Func::all_reduce, kCount);
    std::vector<Program>& programs = job.workload.roles[0].iterations;
    programs.push_back(programs[0]);
    programs[1].streams[0].repeat(0, 10'000'000);
    const auto control = Control::meet(World{});
    StopsAfterAnIteration observer(*control);
    const Result result = job.run(*control, &observer);
    EXPECT_EQ(result.interrupted, control->stop_reason());
    ASSERT_EQ(result.iterations.size(), 1u);
    ASSERT_TRUE(result.network);
    for (const LinkTier& tier : result.network->tiers) {
      EXPECT_GT(tier.utilisation_max, 0.1) << tier.name;
      EXPECT_LE(tier.utilisation_max, 1) << tier.name;
    }
    EXPECT_EQ(result.fidelity.valid_for, (std::vector<std::string>{"order", "step_time"}));
  }
}

// One of a leaf's two links is slow. Which of them a burst takes is drawn, so a step may do without
// the slow one; whatever is drawn, both together are not faster than their rates.
TEST(Links, APlansLeastStepHoldsWhateverFlowletsChoose) {
  TopologySpec spec = leaf_spine(2, 2);
  spec.routing = routing("flowlet");
  spec.degraded = {{"leaf0-spine0", kNicRate / 100}};
  SmallJob job = job_on(spec, 4);
  job.collective(Func::all_to_all, 30'000);
  job.spec.run.iterations = 40;
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  double shortest = 1e9;
  for (const IterationReport& i : job.run().iterations) shortest = std::min(shortest, i.seconds);
  EXPECT_LE(plan.step_seconds_at_least, shortest);
  ASSERT_TRUE(plan.network);
  EXPECT_DOUBLE_EQ(plan.network->tiers[0].utilisation_max, 1);
}

// ---- Memory ----

TEST(Links, CarryRealDataInMemoryBetweenShards) {
  for (const char* name : {"ecmp", "spray"}) {
    TopologySpec spec = leaf_spine(2, 2, 2);
    spec.routing = routing(name);
    SmallJob job = job_on(spec, 4, 2, FabricKind::memory);
    job.spec.run.verify = true;
    job.spec.run.shards = 3;
    job.spec.run.iterations = 3;
    job.spec.collectives.slice_bytes = 4000;
    job.collective(Func::all_reduce, 20'000).collective(Func::all_to_all, 500);
    const Result real = job.run();
    EXPECT_EQ(real.interrupted, "");
    ASSERT_TRUE(real.verify && real.network);
    EXPECT_GT(real.verify->checked_elements, 0u);
    EXPECT_EQ(real.verify->wrong_elements, 0u);
    EXPECT_EQ(real.network->tiers[0].bytes, between_leaves(real, job));
    job.spec.fabric.kind = FabricKind::virtual_time;
    job.spec.dilation = 0;
    EXPECT_EQ(real.network->tiers[1].bytes, job.run().network->tiers[1].bytes);
  }
}

// Messages take less time than the machine needs for them, so several are late at once. A short one
// stays behind the long ones of its connection, although the link is faster than the NIC.
TEST(Links, KeepTheOrderOfMessagesThatMemorySendsLate) {
  SmallJob job = job_on(leaf_spine(2, 1), 4, 2, FabricKind::memory);
  job.spec.cluster.nic.rate_bps = 1e11;
  job.spec.dilation = 1;
  job.spec.run.iterations = 20;
  job.spec.collectives.slice_bytes = 4096;
  job.collective(Func::all_reduce, 20'000);  // in slices of 4,096 and 904 bytes
  EXPECT_EQ(job.run().interrupted, "");
}

}  // namespace
}  // namespace ghostrank
