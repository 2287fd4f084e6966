// Links that events take down or slow down: closed forms in every model of the network.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/network/link_rates.h"
#include "tests/emulator/events.h"
#include "tests/emulator/network/leaf_spine.h"

namespace ghostrank {
namespace {

using testing::kLatency;
using testing::kNicRate;
using testing::kSerial;
using testing::leaf_spine;
using testing::SmallJob;
using testing::with_events;
using testing::with_sends;

constexpr Picoseconds kUs = kPicosPerMicro;

// Two nodes on leaves of their own, with one spine between them; one message of 80 us.
SmallJob one_message(NetworkModel network = NetworkModel::loggp) {
  SmallJob job(2, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {kNicRate, 6 * kUs};
  job.spec.cluster.topology = leaf_spine(2, 1);
  job.spec.fabric.network = network;
  return with_sends(job, {{0, 1}});
}

double seconds_with(SmallJob job, std::vector<JobEvent> events) {
  const Result result = with_events(job, std::move(events)).run();
  EXPECT_EQ(result.interrupted, "");
  return result.iterations.at(0).seconds;
}

JobEvent of(const SmallJob& job, const std::string& name, Picoseconds at, Picoseconds lasts,
            double bps = 0) {
  return testing::link(job.spec.cluster, name, at, lasts, bps);
}

// ---- A message alone ----

TEST(LinkEvents, ThatTakeALinkDownDuringAMessageEndItSoMuchLater) {
  for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow})
    for (const char* name : {"leaf0-spine0", "spine0-leaf0", "leaf1-spine0", "spine0-leaf1"}) {
      const SmallJob job = one_message(network);
      EXPECT_NEAR(seconds_with(job, {of(job, name, 20 * kUs, 50 * kUs)}),
                  kSerial + kLatency + 50e-6, 1e-11)
          << name << ' ' << static_cast<int>(network);
    }
}

// The first byte comes to its first link after a third of the latency, 2 us; a flow begins at once.
TEST(LinkEvents, ThatHalveARateMakeTheRestTakeTwiceAsLong) {
  const SmallJob job = one_message(), flow = one_message(NetworkModel::flow);
  const auto halved = [&](const SmallJob& one, Picoseconds lasts) {
    return seconds_with(one, {of(one, "leaf0-spine0", 20 * kUs, lasts, kNicRate / 2)});
  };
  EXPECT_NEAR(halved(job, JobEvent::kEver), kSerial + kLatency + 62e-6, 1e-11);
  EXPECT_NEAR(halved(flow, JobEvent::kEver), kSerial + kLatency + 60e-6, 1e-11);
  EXPECT_NEAR(halved(job, 30 * kUs), kSerial + kLatency + 15e-6, 1e-11);
  EXPECT_NEAR(halved(flow, 30 * kUs), kSerial + kLatency + 15e-6, 1e-11);
}

TEST(LinkEvents, ThatOverlapCountAsTheLowestRate) {
  for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
    const SmallJob job = one_message(network);
    // Half from 20 us on, nothing from 30 to 40, half until 50.
    EXPECT_NEAR(seconds_with(job, {of(job, "leaf0-spine0", 20 * kUs, 30 * kUs, kNicRate / 2),
                                   of(job, "leaf0-spine0", 30 * kUs, 10 * kUs)}),
                kSerial + kLatency + 20e-6, 1e-11);
  }
}

TEST(LinkEvents, LetAMessageThatComesWhileTheLinkIsDownWait) {
  const SmallJob job = one_message(), flow = one_message(NetworkModel::flow);
  EXPECT_NEAR(seconds_with(job, {of(job, "leaf0-spine0", 0, 50 * kUs)}), kSerial + kLatency + 48e-6,
              1e-11);
  EXPECT_NEAR(seconds_with(flow, {of(flow, "leaf0-spine0", 0, 50 * kUs)}),
              kSerial + kLatency + 50e-6, 1e-11);
  // What waited is in the report.
  SmallJob waits = job;
  const Result result = with_events(waits, {of(job, "leaf0-spine0", 0, 50 * kUs)}).run();
  EXPECT_NEAR(result.network->hottest.at(0).longest_wait_s.value_or(0), 48e-6, 1e-11);
}

// A NIC half as fast as the links: what has come while the link was down passes at twice the rate.
TEST(LinkEvents, LetALinkCatchUpWithASlowerNic) {
  SmallJob job = one_message();
  job.spec.cluster.nic.rate_bps = kNicRate / 2;
  job.spec.cluster.topology.uplink_bps = kNicRate;
  const double alone = 2 * kSerial + kLatency;
  EXPECT_NEAR(seconds_with(job, {of(job, "leaf0-spine0", 20 * kUs, 10 * kUs)}), alone, 1e-11);
  // Its last byte comes to the link at 162 us; from 155 us on 7 us of bytes take 3.5.
  EXPECT_NEAR(seconds_with(job, {of(job, "leaf0-spine0", 155 * kUs, 20 * kUs)}),
              alone + (175 + 3.5 - 162) * 1e-6, 1e-11);
}

TEST(LinkEvents, OfOtherLinksAndOtherTimesChangeNothing) {
  SmallJob job = one_message();
  job.spec.cluster.topology = leaf_spine(2, 2);
  job.spec.cluster.topology.uplink_bps = kNicRate;
  for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
    job.spec.fabric.network = network;
    const Result plain = job.run();
    const std::string used = plain.network->hottest.at(0).link;
    const std::string other = used.find("spine0") != std::string::npos ? "spine1" : "spine0";
    EXPECT_NEAR(seconds_with(job, {of(job, "leaf0-" + other, 0, JobEvent::kEver, 1e9),
                                   of(job, "leaf1-" + other, 10 * kUs, 20 * kUs)}),
                plain.iterations.at(0).seconds, 1e-12);
    EXPECT_NEAR(seconds_with(job, {of(job, used, 200 * kUs, 20 * kUs)}),
                plain.iterations.at(0).seconds, 1e-12);
  }
}

TEST(LinkEvents, DoNotTouchWarmUps) {
  SmallJob job = one_message();
  job.spec.run.warmup = 1;
  EXPECT_NEAR(seconds_with(job, {of(job, "leaf0-spine0", 20 * kUs, 50 * kUs)}),
              kSerial + kLatency + 50e-6, 1e-11);
  for (const NetworkModel network : {NetworkModel::flow, NetworkModel::packet}) {
    struct First : Observer {
      double seconds = 0;
      void on_iteration(int index, const IterationReport& report) override {
        if (index < 0) seconds = report.seconds;
      }
    } first;
    job.spec.fabric.network = network;
    job.spec.events = nullptr;
    const double plain = job.run().iterations.at(0).seconds;
    with_events(job, {of(job, "leaf0-spine0", 20 * kUs, 50 * kUs)}).run(&first);
    EXPECT_NEAR(first.seconds, plain, 1e-12) << static_cast<int>(network);
  }
}

// ---- Calls ----

// A ring is as fast as its slowest edge.
TEST(LinkEvents, ThatHalveALinkHalveTheRingThatCrossesIt) {
  for (const NetworkModel network :
       {NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet}) {
    SmallJob job(4, 1, FabricKind::virtual_time);
    job.spec.cluster.nic = {kNicRate, 3 * kUs};
    job.spec.cluster.topology = leaf_spine(4, 1);
    job.spec.fabric.network = network;
    job.spec.fabric.queues.control = &congestion_controls()[1];  // none
    job.spec.collectives.algorithm(Func::all_reduce) = "ring";
    job.collective(Func::all_reduce, 8'000'000);
    const double plain = job.run().iterations.at(0).seconds;
    const double halved =
        seconds_with(job, {of(job, "leaf2-spine0", 0, JobEvent::kEver, kNicRate / 2)});
    EXPECT_NEAR(halved / plain, 2, 0.02) << static_cast<int>(network);
  }
}

TEST(LinkEvents, AreAlikeForAnyNumberOfShards) {
  SmallJob job(8, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {kNicRate, 3 * kUs};
  job.spec.cluster.topology = leaf_spine(4, 2, 2);
  job.spec.run.iterations = 3;
  job.compute(20 * kUs).collective(Func::all_reduce, 300'000).collective(Func::all_to_all, 20'000);
  with_events(job,
              {of(job, "leaf0-spine0", 30 * kUs, 100 * kUs),
               of(job, "leaf2-spine1", 10 * kUs, JobEvent::kEver, kNicRate / 20),
               of(job, "spine1-leaf3", 300 * kUs, 50 * kUs), testing::slow(3, 1.5, 100 * kUs)});
  testing::expect_alike_with_shards(job, {2, 4});
}

// Real data is right however long links were down, in real time, too.
TEST(LinkEvents, LoseNothing) {
  for (const FabricKind kind : {FabricKind::virtual_time, FabricKind::memory}) {
    SmallJob job(4, 1, kind);
    job.spec.cluster.nic = {kNicRate, 3 * kUs};
    job.spec.cluster.topology = leaf_spine(2, 1, 2);
    job.spec.run.verify = true;
    job.spec.run.iterations = 2;
    job.collective(Func::all_reduce, 300'000, DataType::int32);
    const double plain = kind == FabricKind::memory ? 0 : job.run().iterations.at(0).seconds;
    const Result result = with_events(job, {of(job, "leaf0-spine0", 30 * kUs, 10'000 * kUs)}).run();
    ASSERT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    EXPECT_GT(result.iterations.at(0).seconds, plain + 9e-3);
  }
}

// ---- Packets ----

TEST(LinkEvents, LosePacketsThatAreSentAgain) {
  for (const bool pause : {false, true}) {
    SmallJob job = one_message(NetworkModel::packet);
    job.spec.fabric.queues.pause = pause;
    const double plain = job.run().iterations.at(0).seconds;
    job.spec.run.verify = true;
    const Result result = with_events(job, {of(job, "leaf0-spine0", 20 * kUs, 50 * kUs)}).run();
    ASSERT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    const double later = result.iterations.at(0).seconds - plain;
    EXPECT_GT(later, 50e-6);
    EXPECT_LT(later, 3e-3);  // one timeout of 1 to 2 ms at the most
    std::uint64_t drops = 0, again = 0;
    for (const LinkTier& tier : result.network->tiers) {
      drops += tier.queue->drops;
      again += tier.queue->again;
    }
    EXPECT_GT(drops, 0u);
    EXPECT_GE(again, drops);
  }
}

// To a packet of 0.72 us at each of three hops.
TEST(LinkEvents, ThatHalveARateHoldForPackets) {
  SmallJob job = one_message(NetworkModel::packet);
  const double plain = job.run().iterations.at(0).seconds;
  EXPECT_NEAR(seconds_with(job, {of(job, "leaf0-spine0", 20 * kUs, JobEvent::kEver, kNicRate / 2)}),
              plain + 62e-6, 3 * 0.72e-6);
}

TEST(LinkEvents, ThatLastLongerThanAllTriesEndTheRunWithAReason) {
  SmallJob job = one_message(NetworkModel::packet);
  job.spec.fabric.queues.retransmit = 100 * kUs;
  const Result result = with_events(job, {of(job, "leaf0-spine0", 20 * kUs, 20'000 * kUs)}).run();
  EXPECT_NE(result.interrupted.find("event takes a link down"), std::string::npos)
      << result.interrupted;
}

// Each NIC is paused until packets of all others have passed the slow link. No advice is already in
// use, and what it says helps.
TEST(LinkEvents, ThatPauseNicsForLongerThanAllTriesEndTheRunWithARemedy) {
  SmallJob job(96, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {kNicRate, 6 * kUs};
  job.spec.cluster.topology = leaf_spine(2, 1);
  job.spec.fabric.network = NetworkModel::packet;
  job.spec.fabric.queues.retransmit = 300 * kUs;
  std::vector<std::pair<int, int>> sends;
  for (int node = 0; node < 48; ++node) sends.emplace_back(node, node + 48);
  with_sends(job, sends);
  with_events(job, {of(job, "spine0-leaf1", 0, JobEvent::kEver, kNicRate / 100)});
  const std::string why = job.run().interrupted;
  EXPECT_NE(why.find("take a larger fabric.queues.retransmit_us"), std::string::npos) << why;
  EXPECT_EQ(why.find("dcqcn"), std::string::npos) << why;
  EXPECT_EQ(why.find("circle"), std::string::npos) << why;
  job.spec.fabric.queues.retransmit = 20'000 * kUs;
  EXPECT_EQ(job.run().interrupted, "");
}

// ---- The parts ----

TEST(LinkRates, AreThoseOfBothDirections) {
  SmallJob job = one_message();
  JobEvents events{{of(job, "leaf1-spine0", 10, 20), of(job, "leaf1-spine0", 25, 10, 25e9)}};
  const Topology topology(job.spec);
  const LinkRates rates(events, topology);
  ASSERT_EQ(topology.links(), 4u);
  int changing = 0;
  for (std::uint32_t link = 0; link < topology.links(); ++link) {
    const RateCurve* curve = rates.of(link);
    EXPECT_EQ(curve != nullptr, topology.link_name(link).find("leaf1") != std::string::npos);
    if (!curve) continue;
    ++changing;
    EXPECT_EQ(curve->ps_per_byte(9), 80);
    EXPECT_TRUE(std::isinf(curve->ps_per_byte(10)));
    EXPECT_TRUE(std::isinf(curve->ps_per_byte(29)));
    EXPECT_EQ(curve->ps_per_byte(30), 320);
    EXPECT_EQ(curve->ps_per_byte(35), 80);
    EXPECT_EQ(curve->passes_from(5), 5);
    EXPECT_EQ(curve->passes_from(15), 30);
    EXPECT_EQ(curve->duration(15, 0), 15);  // not even the end of an empty message passes
  }
  EXPECT_EQ(changing, 2);
  EXPECT_EQ(rates.next_change(0), 10);
  EXPECT_EQ(rates.next_change(10), 30);
  EXPECT_EQ(rates.next_change(35), NicRates::kNever);
}

}  // namespace
}  // namespace ghostrank
