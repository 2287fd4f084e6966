// Random jobs whose calls travel as flows and as packets: beside the same jobs message by message.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/common/dice.h"
#include "collectives/routing.h"
#include "profiles/job/switches.h"
#include "tests/emulator/events.h"
#include "tests/emulator/network/leaf_spine.h"
#include "tests/emulator/support.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

using testing::append_sends;
using testing::kNicRate;
using testing::ledger_text;
using testing::SmallJob;
using testing::with_events;
using testing::with_sends;

// A random topology, where links may have failed; every pair of NICs that may talk stays connected.
void draw_topology(checking::Dice& dice, ClusterSpec& cluster) {
  TopologySpec& spec = cluster.topology;
  spec.oversubscription = static_cast<double>(1 + dice.below(4));
  spec.spines = static_cast<int>(2 + dice.below(3));
  spec.routing = &routings()[dice.below(routings().size())];
  switch (dice.below(6)) {
    case 0:
      return;
    case 1:
      spec.kind = TopologySpec::Kind::leaf_spine;
      spec.leaves = static_cast<int>(1 + dice.below(4));
      break;
    case 2:
      spec.kind = TopologySpec::Kind::rail_optimised;
      spec.leaves = cluster.nics_per_node * static_cast<int>(1 + dice.below(3));
      break;
    case 3:
      spec.kind = TopologySpec::Kind::torus;
      spec.dimensions = {static_cast<int>(2 + dice.below(3)), static_cast<int>(1 + dice.below(3))};
      spec.link_bps = kNicRate / static_cast<double>(1 + dice.below(2));
      break;
    case 4:
      spec.kind = TopologySpec::Kind::dragonfly;
      spec.groups = static_cast<int>(dice.below(2) == 0 ? 0 : 2 + dice.below(3));
      spec.global_bps = kNicRate / static_cast<double>(1 + dice.below(3));
      break;
    default:
      spec.kind = TopologySpec::Kind::fat_tree;
      spec.pods = 2;
      spec.leaves = 4;
      spec.cores = spec.spines;
      spec.pod_oversubscription = static_cast<double>(1 + dice.below(7));
      break;
  }
  if (dice.below(2) == 0) return;
  const SwitchGraph graph = switches_of(cluster);
  if (graph.cables.empty()) return;
  const std::uint64_t cable = dice.below(graph.cables.size());
  if (dice.below(2) == 0)
    spec.failed = {cable_name(graph, static_cast<std::uint32_t>(cable))};
  else
    spec.degraded = {{cable_name(graph, static_cast<std::uint32_t>(cable)), 0.1 * kNicRate}};
}

// Rounds of collectives and of transfers by a random permutation, in which a sender may wait for
// its receiver.
SmallJob random_job(std::uint64_t seed) {
  checking::Dice dice(seed);
  const int gpus = static_cast<int>(1 + dice.below(2));
  const int nodes = static_cast<int>(4 + 2 * dice.below(5));
  SmallJob job(nodes, gpus, FabricKind::virtual_time);
  job.spec.cluster.nic = {kNicRate, 6 * kPicosPerMicro};
  job.spec.fabric.network = NetworkModel::flow;
  constexpr const char* kLibraries[] = {"generic", "gloo", "nccl-2.28", "openmpi-4.1"};
  job.spec.collectives.library = kLibraries[dice.below(4)];
  job.spec.run.iterations = 2;
  job.spec.run.jitter = dice.below(2) == 0 ? 0 : 0.1;
  job.spec.run.seed = seed;
  draw_topology(dice, job.spec.cluster);
  if (seed % 3 == 1)
    job.spec.fabric.queue_pairs = {static_cast<std::uint32_t>(2 + seed % 4), seed % 2 == 0};
  constexpr Func kFuncs[] = {Func::all_reduce, Func::all_gather, Func::broadcast, Func::all_to_all};
  std::vector<int> to(job.workload.ranks);
  std::iota(to.begin(), to.end(), 0);
  for (std::size_t i = to.size(); i-- > 1;) std::swap(to[i], to[dice.below(i + 1)]);
  with_sends(job, {});
  for (std::uint64_t rounds = 1 + dice.below(4); rounds > 0; --rounds) {
    std::vector<std::pair<int, int>> pairs;
    for (int r = 0; r < job.workload.ranks; ++r)
      if (to[r] != r) pairs.push_back({r, to[r]});
    Op op;
    op.kind = Op::Kind::collective;
    op.func = kFuncs[dice.below(4)];
    op.count = 1000 * (1 + dice.below(300));
    Op compute;
    compute.duration = static_cast<Picoseconds>(dice.below(50)) * kPicosPerMicro;
    for (Role& role : job.workload.roles) {
      role.iterations[0].streams[0].push_back(compute);
      role.iterations[0].streams[0].push_back(op);
    }
    append_sends(job, pairs);
  }
  return job;
}

// The least time that the busiest link or NIC needs, as a share of the time played.
double least_share(const Result& result) {
  double busiest = 0, total = 0;
  for (const IterationReport& i : result.iterations) total += i.seconds;
  if (result.network)
    for (const LinkTier& tier : result.network->tiers)
      busiest = std::max(busiest, tier.utilisation_max);
  for (const NicTraffic& nic : result.nics) {
    const double bits = 8 * std::max(nic.tx_bytes, nic.rx_bytes);
    busiest =
        std::max(busiest, bits / kNicRate * static_cast<double>(result.iterations.size()) / total);
  }
  return busiest;
}

TEST(Flows, OfRandomJobsSendTheSameAsMessagesAndFillNoLinkBeyondItsRate) {
  const std::uint64_t jobs = test::number_in("GHOSTRANK_RANDOM_JOBS", 60);
  int with_links = 0, with_changes = 0;
  for (std::uint64_t seed = 0; seed < jobs; ++seed) {
    SmallJob job = random_job(seed);
    std::mt19937 random(static_cast<unsigned>(seed));
    if (seed % 3 == 0)
      with_events(job, testing::random_events(random, job.spec, job.workload.ranks));
    SCOPED_TRACE("job " + std::to_string(seed));
    const TopologySpec& topology = job.spec.cluster.topology;
    with_links += topology.kind != TopologySpec::Kind::nonblocking;
    with_changes += !topology.failed.empty() || !topology.degraded.empty();
    const Result flow = job.run(), again = job.run();
    SmallJob same = job;
    same.spec.fabric.network = NetworkModel::loggp;
    const Result loggp = same.run();
    ASSERT_EQ(flow.interrupted, "");
    ASSERT_EQ(loggp.interrupted, "");
    EXPECT_EQ(ledger_text(flow), ledger_text(loggp));
    ASSERT_EQ(flow.iterations.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_EQ(flow.iterations[i].seconds, again.iterations[i].seconds);
    EXPECT_EQ(testing::network_text(flow), testing::network_text(again));
    EXPECT_LE(least_share(flow), 1 + 1e-9);
    if (HasFailure()) return;  // one failing job is enough to look into
  }
  if (jobs >= 60) {
    EXPECT_GE(with_links, 30);
    EXPECT_GE(with_changes, 10);
  }
}

// Whatever the queues do: the ledger is that of messages, data is right, no port carries more than
// its rate, and with pauses nothing is lost.
TEST(Packets, OfRandomJobsSendTheSameAsMessages) {
  const std::uint64_t jobs = test::number_in("GHOSTRANK_RANDOM_JOBS", 6);
  std::uint64_t drops = 0, marks = 0, pauses = 0;
  for (std::uint64_t seed = 0; seed < jobs; ++seed) {
    SmallJob job = random_job(seed);
    SCOPED_TRACE("job " + std::to_string(seed));
    checking::Dice dice(seed);
    QueueSpec& queues = job.spec.fabric.queues;
    queues.pause = dice.below(2) == 0;
    queues.buffer = queues.pause ? 300'000 : 120'000;
    queues.scheduling = dice.below(2) == 0 ? Scheduling::fifo : Scheduling::fair;
    // Senders that nothing slows down keep each other out of a buffer that overflows: marks begin
    // well before that.
    if (!queues.pause) {
      queues.mark_from = 10'000;
      queues.mark_to = 80'000;
      queues.mark_most = 0.2;
    }
    queues.control = &congestion_controls()[queues.pause && dice.below(2) == 0 ? 1 : 0];
    queues.window = dice.below(2) == 0 ? 0 : 50'000;
    queues.retransmit = 10'000 * kPicosPerMicro;
    std::mt19937 random(static_cast<unsigned>(seed));
    if (seed % 3 == 0)
      with_events(job, testing::random_events(random, job.spec, job.workload.ranks,
                                              !queues.pause));  // what is down loses packets
    job.spec.fabric.network = NetworkModel::packet;
    job.spec.run.verify = seed % 4 == 0;
    const Result packets = job.run(), again = job.run();
    ASSERT_EQ(packets.interrupted, "");
    SmallJob same = job;
    same.spec.fabric.network = NetworkModel::loggp;
    const Result loggp = same.run();
    EXPECT_EQ(ledger_text(packets), ledger_text(loggp));
    if (job.spec.run.verify) {
      EXPECT_EQ(packets.verify->wrong_elements, 0u);
    }
    ASSERT_EQ(packets.iterations.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_EQ(packets.iterations[i].seconds, again.iterations[i].seconds);
    EXPECT_EQ(testing::network_text(packets), testing::network_text(again));
    EXPECT_LE(least_share(packets), 1 + 1e-9);
    std::uint64_t dropped = 0;
    for (const LinkTier& tier : packets.network->tiers) {
      dropped += tier.queue->drops;
      marks += tier.queue->marks;
      pauses += tier.queue->pauses;
    }
    if (queues.pause) {
      EXPECT_EQ(dropped, 0u);
    }
    drops += dropped;
    if (HasFailure()) return;  // one failing job is enough to look into
  }
  if (jobs >= 6) {
    EXPECT_GT(drops, 0u);
    EXPECT_GT(marks, 0u);
    EXPECT_GT(pauses, 0u);
  }
}

}  // namespace
}  // namespace ghostrank
