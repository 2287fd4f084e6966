// NICs whose rates change in time, within a step and within a message.
#include "profiles/job/nic_rates.h"

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::append_sends;
using testing::SmallJob;
using testing::with_sends;

constexpr double kRate = 10e9;          // of every NIC at first: 0.8 ns a byte
constexpr double kByte = 8e12 / kRate;  // picoseconds
constexpr Picoseconds kMs = 1'000'000'000;

// Nodes of one NIC; `curve` is that of all of them, or of node `only`.
SmallJob job(int nodes, std::vector<RateCurve::Change> curve, int only = -1) {
  SmallJob job(nodes, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {kRate, 0};
  VectorBy<Nic, std::uint32_t> curve_of(nodes, only < 0 ? 0u : NicRates::kConstant);
  if (only >= 0) curve_of[Nic(only)] = 0;
  job.spec.cluster.nic_rates = std::make_shared<const NicRates>(
      std::vector<RateCurve>{RateCurve(std::move(curve))}, curve_of);
  return job;
}

double seconds(const SmallJob& job) {
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  return result.iterations.back().seconds;
}

// 10 MB: 6 MB in 4.8 ms, then 4 MB at half the rate.
const std::vector<RateCurve::Change> kHalves{{0, kByte}, {48 * kMs / 10, 2 * kByte}};

TEST(NicRatesInJobs, LetAMessageTakeTheIntegralOfTheRate) {
  SmallJob one = job(2, kHalves);
  one.collective(Func::broadcast, 10'000'000, DataType::uint8);
  EXPECT_NEAR(seconds(one), 4.8e-3 + 6.4e-3, 1e-11);
  // What is on its way when the rate falls is taken in at the lower rate.
  one.spec.cluster.nic.latency = 2 * kPicosPerMicro;
  EXPECT_NEAR(seconds(one), 4.8e-3 + 6.4e-3 + 2 * 2e-6, 1e-11);
}

TEST(NicRatesInJobs, OfTheSlowerNicSetWhenAMessageIsIn) {
  for (const int slow : {0, 1}) {
    SmallJob one = job(2, kHalves, slow);
    one.collective(Func::broadcast, 10'000'000, DataType::uint8);
    EXPECT_NEAR(seconds(one), 11.2e-3, 1e-11) << slow;
  }
}

// Nodes of one NIC, with a curve each.
SmallJob job_of(std::vector<RateCurve> curves) {
  const auto nodes = static_cast<int>(curves.size());
  SmallJob job(nodes, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {kRate, 0};
  VectorBy<Nic, std::uint32_t> curve_of(nodes);
  for (const Nic nic : curve_of.keys()) curve_of[nic] = static_cast<std::uint32_t>(nic.value());
  job.spec.cluster.nic_rates =
      std::make_shared<const NicRates>(std::move(curves), std::move(curve_of));
  return job;
}

// 100 ms of bytes: at first the one NIC is slow, then the other.
TEST(NicRatesInJobs, OfTheSlowerNicAtEachTimeLetBytesPass) {
  const RateCurve falls({{0, kByte}, {100 * kMs, 10 * kByte}});
  const RateCurve rises({{0, 10 * kByte}, {100 * kMs, kByte}});
  struct Case {
    TopologySpec::Kind fabric;
    NetworkModel network = NetworkModel::loggp;
  };
  for (const Case& c : {Case{TopologySpec::Kind::nonblocking},
                        Case{TopologySpec::Kind::nonblocking, NetworkModel::flow},
                        Case{TopologySpec::Kind::leaf_spine}})
    for (const auto& [from, to] : {std::pair{falls, rises}, std::pair{rises, falls}}) {
      SmallJob two = job_of({from, to});
      two.spec.cluster.topology.kind = c.fabric;
      two.spec.cluster.topology.leaves = 2;
      two.spec.fabric.network = c.network;
      with_sends(two, {{0, 1}}, 125'000'000 / 4);
      EXPECT_NEAR(seconds(two), 1, 1e-9);
    }
}

// Every NIC of a ring of N sends and takes in 2 (N - 1) / N of the tensor, one block at a time.
TEST(NicRatesInJobs, SlowARingFromTheMomentOnAtWhichTheyChange) {
  for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
    SmallJob ring = job(4, kHalves);
    ring.spec.fabric.network = network;
    ring.spec.collectives.algorithm(Func::all_reduce) = "ring";
    ring.collective(Func::all_reduce, 2'000'000);
    EXPECT_NEAR(seconds(ring), 4.8e-3 + (12e6 - 6e6) * 1.6e-9, 1e-9);
  }
}

// One slow NIC holds up the whole ring, as the slowest of its edges.
TEST(NicRatesInJobs, OfOneNicHoldUpAllFlowsThatPassIt) {
  SmallJob ring = job(4, kHalves, 2);
  ring.spec.fabric.network = NetworkModel::flow;
  ring.spec.collectives.algorithm(Func::all_reduce) = "ring";
  ring.collective(Func::all_reduce, 2'000'000).collective(Func::all_reduce, 1'000'000);
  EXPECT_NEAR(seconds(ring), 4.8e-3 + (18e6 - 6e6) * 1.6e-9, 1e-9);
}

// Rates that rise again while nothing flows are those of the next flow.
TEST(NicRatesInJobs, ChangeWhileFlowsRest) {
  SmallJob one = job(2, {{0, 4 * kByte}, {5 * kMs, kByte}, {30 * kMs, 2 * kByte}});
  one.spec.fabric.network = NetworkModel::flow;
  one.collective(Func::broadcast, 1'000'000, DataType::uint8)
      .compute(10 * kMs)
      .collective(Func::broadcast, 1'000'000, DataType::uint8);
  EXPECT_NEAR(seconds(one), 3.2e-3 + 10e-3 + 0.8e-3, 1e-11);
}

// A NIC that was last busy before its rate fell takes in what comes now at the rate of now. Two
// messages that arrive together take turns.
TEST(NicRatesInJobs, ThatFellWhileANicWasIdleHoldForWhatComesThen) {
  struct Case {
    TopologySpec::Kind fabric;
    NetworkModel network;
  };
  for (const Case& c : {Case{TopologySpec::Kind::nonblocking, NetworkModel::loggp},
                        Case{TopologySpec::Kind::nonblocking, NetworkModel::flow},
                        Case{TopologySpec::Kind::leaf_spine, NetworkModel::loggp}}) {
    SmallJob three = job(3, {{0, kByte}, {100 * kMs, 10 * kByte}}, 0);
    three.spec.cluster.topology.kind = c.fabric;
    three.spec.cluster.topology.leaves = 3;
    three.spec.fabric.network = c.network;
    three.compute(200 * kMs).collective(Func::gather, 12'500'000, DataType::uint8);
    EXPECT_NEAR(seconds(three), 0.4, 1e-9);
  }
}

// A long message of 100 ms at one rate and 10 ms at the other, interrupted by a short one: what has
// come before the rate changes came at the rate of then.
TEST(NicRatesInJobs, CountWhatHasComeOfAnInterruptedMessage) {
  for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
    for (const auto& [first, then] : {std::pair{kByte, 10 * kByte}, std::pair{10 * kByte, kByte}}) {
      SmallJob three = job(3, {{0, first}, {100 * kMs, then}}, 2);
      three.spec.fabric.network = network;
      const double bytes = 100 * kMs / first + 10 * kMs / then;
      with_sends(three, {{0, 2}}, static_cast<std::uint64_t>(bytes) / 4);
      Op late;
      late.duration = 105 * kMs;
      three.workload.roles[1].iterations[0].streams[0].push_back(late);
      append_sends(three, {{1, 2}}, 1);
      EXPECT_NEAR(seconds(three), 0.11, 1e-6) << first;
    }
  }
}

// Bytes come as slowly as the sender's NIC lets them, also while the receiver's is fast: half of
// the long message comes beside the short one.
TEST(NicRatesInJobs, OfAFastReceiverDoNotMakeAMessageComeSooner) {
  for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
    const RateCurve slow({{0, 10 * kByte}}), falls({{0, kByte}, {100 * kMs, 10 * kByte}});
    SmallJob three = job_of({slow, slow, falls});
    three.spec.fabric.network = network;
    with_sends(three, {{0, 2}}, 25'000'000 / 4);  // 200 ms
    Op late;
    late.duration = 100 * kMs;
    three.workload.roles[1].iterations[0].streams[0].push_back(late);
    append_sends(three, {{1, 2}}, 12'500'000 / 4);
    EXPECT_NEAR(seconds(three), 0.3, 1e-9);
  }
}

// A message that waits for a link reaches its NIC after the rate has fallen.
TEST(NicRatesInJobs, HoldForWhatWaitedForALink) {
  SmallJob four = job(4, {{0, kByte}, {5 * kMs, 10 * kByte}}, 2);
  four.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
  four.spec.cluster.topology.leaves = 2;
  four.spec.cluster.topology.spines = 1;
  four.spec.cluster.topology.oversubscription = 2;  // a link has the rate of a NIC
  with_sends(four, {{0, 3}}, 12'500'000 / 4);       // 10 ms
  append_sends(four, {{1, 2}}, 6'250'000 / 4);
  EXPECT_NEAR(seconds(four), 10e-3 + 50e-3, 1e-6);
}

TEST(RateCurve, GoesBackwardsAsForwards) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<RateCurve::Change> changes;
    for (int i = 0; i < 20; ++i)
      changes.push_back({i * 1'000'000, kByte * static_cast<double>(1 + random() % 9)});
    const RateCurve curve(changes);
    const auto start = static_cast<Picoseconds>(random() % 25'000'000);
    const auto bytes = static_cast<double>(random() % 10'000);
    const Picoseconds lasts = curve.duration(start, bytes);
    // Half a picosecond at the end is up to nine times that at the start.
    EXPECT_LE(std::abs(curve.duration_until(start + lasts, bytes) - lasts), 5);
  }
}

// The slower of two curves, one of them seen later, piece by piece.
TEST(SlowerRate, IsThatOfBothAtEachTime) {
  const RateCurve from({{0, 1000}, {100, 4000}}), to({{0, 2000}, {70, 500}, {130, 8000}});
  const SlowerRate both({&from}, {&to}, 20);
  EXPECT_EQ(both.next_change(0), 50);
  EXPECT_EQ(both.next_change(50), 100);
  EXPECT_EQ(both.next_change(110), RateCurve::kEver);
  EXPECT_DOUBLE_EQ(both.bytes_between(-100, 210), 150 / 2000. + 50 / 1000. + 10 / 4000. + .0125);
  EXPECT_EQ(both.duration(0, 50 / 2000. + 50 / 1000. + 10 / 4000. + 0.01), 190);
  EXPECT_EQ(both.duration_until(190, 50 / 2000. + 50 / 1000. + 10 / 4000. + 0.01), 190);
  EXPECT_DOUBLE_EQ(SlowerRate({nullptr, 0}, {&to}).bytes_between(0, 80), 70 / 2000. + 10 / 500.);
}

TEST(NicRatesInJobs, OfPacketsAreThoseOfTheirTime) {
  SmallJob one = job(2, kHalves);
  one.spec.fabric.network = NetworkModel::packet;
  one.spec.fabric.queues.buffer = 1 << 20;
  one.collective(Func::broadcast, 10'000'000, DataType::uint8);
  const double packet = one.spec.fabric.packets.mtu * 1.6e-9;
  EXPECT_NEAR(seconds(one), 11.2e-3, 2 * packet);
}

// Rates that never differ from the NICs' own change nothing, to the last bit.
TEST(NicRatesInJobs, ThatStayAreAsIfThereWereNone) {
  struct Case {
    const char *library, *algorithm;
    TopologySpec::Kind fabric;
    NetworkModel network = NetworkModel::loggp;
  };
  for (const Case& c :
       {Case{"generic", "auto", TopologySpec::Kind::nonblocking},
        Case{"generic", "auto", TopologySpec::Kind::leaf_spine},
        Case{"generic", "auto", TopologySpec::Kind::leaf_spine, NetworkModel::flow},
        Case{"generic", "auto", TopologySpec::Kind::leaf_spine, NetworkModel::packet},
        Case{"nccl-2.28", "auto", TopologySpec::Kind::nonblocking},
        Case{"gloo", "auto", TopologySpec::Kind::leaf_spine},
        Case{"generic", "switchml", TopologySpec::Kind::nonblocking},
        Case{"generic", "omnireduce", TopologySpec::Kind::leaf_spine}}) {
    SCOPED_TRACE(std::string(c.library) + "/" + c.algorithm);
    SmallJob plain(4, 2, FabricKind::virtual_time);
    plain.spec.cluster.nic = {3e9, 1'234'567};
    plain.spec.cluster.topology.kind = c.fabric;
    plain.spec.cluster.topology.leaves = 2;
    plain.spec.collectives.library = c.library;
    plain.spec.collectives.algorithm(Func::all_reduce) = c.algorithm;
    plain.spec.cluster.servers.count = std::string(c.algorithm) == "omnireduce" ? 1 : 0;
    plain.spec.fabric.network = c.network;
    plain.spec.fabric.queues.buffer = 1 << 20;
    plain.compute(7'777'777).collective(Func::all_reduce, 123'457);
    SmallJob changing = plain;
    changing.spec.cluster.nic_rates = std::make_shared<const NicRates>(
        std::vector<RateCurve>{RateCurve({{0, 8e12 / 3e9}})}, VectorBy<Nic, std::uint32_t>(8, 0u));
    EXPECT_EQ(seconds(changing), seconds(plain));
    EXPECT_EQ(testing::ledger_text(changing.run()), testing::ledger_text(plain.run()));
  }
}

// A server's NIC is faster than those of the ranks, even where it is slower than usual.
TEST(NicRatesInJobs, OfAServerMayBeAboveThoseOfRanks) {
  for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
    SmallJob plain(4, 1, FabricKind::virtual_time);
    plain.spec.cluster.nic = {kRate, 2 * kPicosPerMicro};
    plain.spec.cluster.servers.count = 1;
    plain.spec.cluster.servers.nic = {10 * kRate, 2 * kPicosPerMicro};
    plain.spec.fabric.network = network;
    plain.collective(Func::all_reduce, 250'000);
    SmallJob slower = plain;
    VectorBy<Nic, std::uint32_t> curve_of(5, NicRates::kConstant);
    curve_of[Nic(4)] = 0;
    slower.spec.cluster.nic_rates = std::make_shared<const NicRates>(
        std::vector<RateCurve>{RateCurve({{0, kByte / 5}})}, curve_of);
    EXPECT_EQ(seconds(slower), seconds(plain));
  }
}

TEST(NicRatesInJobs, AreAlikeForAnyNumberOfShards) {
  std::mt19937 random(1);
  std::vector<RateCurve> curves;
  for (int c = 0; c < 3; ++c) {
    std::vector<RateCurve::Change> changes;
    for (int i = 0; i < 200; ++i)
      changes.push_back({i * 20 * kPicosPerMicro, kByte * static_cast<double>(1 + random() % 9)});
    curves.emplace_back(std::move(changes));
  }
  for (const bool links : {false, true}) {
    SmallJob ring(6, 1, FabricKind::virtual_time);
    ring.spec.cluster.nic = {kRate, 3 * kPicosPerMicro};
    if (links) ring.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
    if (links) ring.spec.cluster.topology.leaves = 3;
    VectorBy<Nic, std::uint32_t> curve_of(6);
    for (const Nic nic : curve_of.keys())
      curve_of[nic] = static_cast<std::uint32_t>(nic.value() % 3);
    ring.spec.cluster.nic_rates = std::make_shared<const NicRates>(curves, curve_of);
    ring.collective(Func::all_reduce, 200'000).collective(Func::all_to_all, 10'000);
    testing::expect_alike_with_shards(ring, {2, 3});
  }
}

TEST(NicRatesInJobs, ReduceRealDataRightInRealTime) {
  SmallJob ring = job(3, {{0, kByte}, {1 * kMs / 10, 5 * kByte}, {2 * kMs / 10, kByte}});
  ring.spec.fabric.kind = FabricKind::memory;
  ring.spec.dilation = 20;
  ring.spec.run.verify = true;
  ring.collective(Func::all_reduce, 100'000);
  const Result result = ring.run();
  EXPECT_EQ(result.interrupted, "");
  EXPECT_EQ(result.verify->wrong_elements, 0u);
}

}  // namespace
}  // namespace ghostrank
