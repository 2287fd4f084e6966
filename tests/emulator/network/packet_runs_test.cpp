// Jobs whose network is played packet by packet: collectives alone beside their closed forms,
// contended calls beside max-min fair flows, data that is right whatever is lost, and what results
// say.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/routing.h"
#include "profiles/error.h"
#include "profiles/job/nic_rates.h"
#include "tests/emulator/network/contended.h"
#include "tests/emulator/network/leaf_spine.h"

namespace ghostrank {
namespace {

using testing::ContendedCase;
using testing::Queues;
using testing::seconds_of;
using testing::SmallJob;

const LinkTier& tier(const Result& result, const std::string& name) {
  for (const LinkTier& t : result.network->tiers)
    if (t.name == name) return t;
  throw std::runtime_error("no tier " + name);
}

TEST(Packets, OfACollectiveAloneTakeAsLongAsTheClosedForm) {
  for (const testing::LoneCollective& lone : testing::lone_collectives())
    for (const NetworkModel model :
         {NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet}) {
      const double expected = testing::closed_form(lone, model, 800'000);
      EXPECT_NEAR(seconds_of(testing::lone_job(lone, model, 800'000).run()), expected,
                  0.001 * expected)
          << lone.name << ' ' << static_cast<int>(model);
    }
}

TEST(Packets, InFairQueuesTakeAsLongAsFairFlows) {
  ASSERT_EQ(testing::contended_cases().size(), 16u);
  for (const ContendedCase& one : testing::contended_cases()) {
    constexpr double kScale = 0.25;
    const double flow =
        seconds_of(testing::contended_job(one, NetworkModel::flow, Queues::fair, kScale).run());
    const Result packet =
        testing::contended_job(one, NetworkModel::packet, Queues::fair, kScale).run();
    EXPECT_NEAR(seconds_of(packet) / flow, 1, 0.05) << one.name;
    for (const LinkTier& t : packet.network->tiers) EXPECT_EQ(t.queue->drops, 0u) << one.name;
  }
}

TEST(Packets, OfShortMessagesBesideALongOneTakeAsLongInEveryModel) {
  const ContendedCase one = testing::interrupted_case();
  const auto seconds = [&](NetworkModel model) {
    return seconds_of(testing::contended_job(one, model, Queues::fair, 1).run());
  };
  const double flow = seconds(NetworkModel::flow);
  EXPECT_NEAR(flow, 8e6 * 8 / 100e9, 0.1 * flow);
  EXPECT_NEAR(seconds(NetworkModel::loggp) / flow, 1, 0.005);
  EXPECT_NEAR(seconds(NetworkModel::packet) / flow, 1, 0.005);
}

TEST(Packets, AreCountedByTier) {
  ContendedCase incast = testing::contended_cases()[1];
  const Result result =
      testing::contended_job(incast, NetworkModel::packet, Queues::dcqcn, 0.5).run();
  ASSERT_TRUE(result.network);
  EXPECT_EQ(result.network->model, "packet");
  const LinkTier& out = tier(result, "nic-switch");
  const LinkTier& in = tier(result, "switch-nic");
  EXPECT_EQ(out.links, 16u);
  EXPECT_EQ(out.messages, 15);
  EXPECT_EQ(out.bytes, result.wire_bytes_per_iteration);
  EXPECT_EQ(in.bytes, result.wire_bytes_per_iteration);
  EXPECT_GT(in.queue->marks + out.queue->pauses, 0u);
  EXPECT_EQ(in.queue->drops, 0u);
  EXPECT_GT(in.queue->longest, 1024u);
  // The receiver's port is busy for what it carries: 15 messages with their headers.
  const double wire =
      15 * 8 * static_cast<double>(Framing{1024, 82, 16}.on_wire(2'000'000)) / 100e9;
  EXPECT_NEAR(in.utilisation_max * seconds_of(result), wire, 1e-9);
}

TEST(Packets, BringRightDataWhateverIsLost) {
  for (const char* routing : {"ecmp", "spray"}) {
    SmallJob job(6, 1, FabricKind::virtual_time);
    job.spec.cluster.nic = {100e9, 2 * kPicosPerMicro};
    job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
    job.spec.cluster.topology.leaves = 3;
    job.spec.cluster.topology.spines = 2;
    job.spec.cluster.topology.oversubscription = 2;
    for (const Routing& row : routings())
      if (row.name == routing) job.spec.cluster.topology.routing = &row;
    job.spec.collectives.algorithm(Func::all_to_all) = "linear";
    job.spec.fabric.network = NetworkModel::packet;
    job.spec.fabric.queues.pause = false;
    job.spec.fabric.queues.control = &congestion_controls()[1];
    job.spec.fabric.queues.buffer = 40'000;
    job.spec.fabric.queues.window = 60'000;
    job.spec.run.verify = true;
    job.collective(Func::all_to_all, 20'000).collective(Func::all_reduce, 50'001);
    const Result result = job.run();
    ASSERT_TRUE(result.verify);
    EXPECT_GT(result.verify->checked_elements, 0u);
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    std::uint64_t drops = 0;
    for (const LinkTier& t : result.network->tiers) drops += t.queue->drops;
    EXPECT_GT(drops, 0u) << routing;
    EXPECT_EQ(seconds_of(job.run()), seconds_of(result));
  }
}

SmallJob two_nodes(double rate_bps = 100e9) {
  SmallJob job(2, 1, FabricKind::virtual_time);
  job.spec.fabric.network = NetworkModel::packet;
  job.spec.cluster.nic = {rate_bps, 20 * kPicosPerMicro};
  job.collective(Func::all_reduce, 1000);
  return job;
}

void expect_refusal(const SmallJob& job, const std::string& what) {
  try {
    job.run();
    FAIL() << "was not refused: " << what;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
    EXPECT_EQ(e.exit_code(), 2);
  }
}

TEST(Packets, NeedABufferForWhatIsUnderWay) {
  SmallJob job = two_nodes();
  job.spec.fabric.queues.buffer = 20'000;
  expect_refusal(job, "fabric.queues.buffer: 20000 bytes are too few");
}

TEST(Packets, AreNotSentAgainBeforeTheyCanBeAcknowledged) {
  SmallJob job = two_nodes();
  job.spec.fabric.queues.retransmit = 40 * kPicosPerMicro;
  expect_refusal(job, "40 us are no longer than a round trip of 41 us");
  const std::string slow = "1000 us are no longer than a round trip of 14440 us (14400 us of it";
  expect_refusal(two_nodes(10e6), slow);
  // Both NICs fall to 10 Mb/s, for long, or for less than a packet takes.
  for (const auto& [until, what] :
       {std::pair{50, slow},
        {5, "1000 us are no longer than a round trip of 10040 us (10000 us"}}) {
    job = two_nodes();
    std::vector<RateCurve::Change> changes{{0, 8e12 / 100e9},
                                           {kPicosPerMilli, 8e12 / 10e6},
                                           {(1 + until) * kPicosPerMilli, 8e12 / 100e9}};
    job.spec.cluster.nic_rates = std::make_shared<const NicRates>(
        std::vector{RateCurve(std::move(changes))}, VectorBy<Nic, std::uint32_t>(2, 0));
    expect_refusal(job, what);
  }
}

TEST(Packets, MayPassSlowLinksWithoutBeingSentAgain) {
  // Four nodes on the first two of four leaves: packets pass the first link at most once, the other
  // one never.
  for (const auto& [link, rate] : {std::pair{"leaf0-spine0", 100e6}, {"leaf3-spine0", 10e6}}) {
    SmallJob job(4, 1, FabricKind::virtual_time);
    job.spec.fabric.network = NetworkModel::packet;
    job.spec.cluster.nic = {100e9, 2 * kPicosPerMicro};
    TopologySpec& topology = job.spec.cluster.topology;
    topology.kind = TopologySpec::Kind::leaf_spine;
    topology.leaves = 4;
    topology.spines = 2;
    topology.places = 8;
    topology.degraded = {{link, rate}};
    job.collective(Func::all_reduce, 1000);
    const Result result = job.run();
    for (const LinkTier& t : result.network->tiers) EXPECT_EQ(t.queue->again, 0u) << link;
  }
}

TEST(Packets, OverSlowLinksTakeAsLongAsMessages) {
  SmallJob job(2, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {10e6, 2 * kPicosPerMicro};
  job.spec.fabric.network = NetworkModel::packet;
  job.spec.fabric.queues.retransmit = 100 * kPicosPerMilli;
  job.collective(Func::broadcast, 1'000'000, DataType::uint8);
  const Result result = job.run();
  const double packet = job.spec.fabric.packets.mtu * 8 / 10e6;
  EXPECT_NEAR(seconds_of(result), 1e6 * 8 / 10e6 + packet, packet / 100);
  EXPECT_EQ(tier(result, "nic-switch").queue->packets, 112u);
}

}  // namespace
}  // namespace ghostrank
