// Blink over the links of a node: its rates beside those of its packings, and beside rings.
#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/node_links.h"
#include "collectives/schemes/blink/packing.h"
#include "emulator/traffic/traffic.h"
#include "tests/emulator/support.h"
#include "tests/one_of.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

constexpr double kPcie = 96e9;

SmallJob job_on(const NodeLinks& links, Func func, const char* algorithm, std::uint64_t count,
                GroupRank root = 0) {
  SmallJob job(1, links.gpus, FabricKind::virtual_time);
  job.spec.cluster.links = std::make_shared<const NodeLinks>(links);
  job.spec.cluster.intra_node = {kPcie, kPicosPerMicro};
  job.spec.fabric.inside_node = InsideNode::messages;
  job.spec.collectives.algorithm(func) = algorithm;
  return job.collective(func, count, DataType::float32, root);
}

double seconds_played(const SmallJob& job) {
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  return result.iterations.empty() ? 0 : result.iterations[0].seconds;
}

std::vector<int> random_gpus(std::mt19937& random, int all, int least) {
  std::vector<int> gpus(all);
  std::iota(gpus.begin(), gpus.end(), 0);
  std::shuffle(gpus.begin(), gpus.end(), random);
  gpus.resize(least + random() % (all - least + 1));
  return gpus;
}

LinkGraph graph_of(const NodeLinks& links) { return {links.gpus, links.bps}; }

// The order of the ring whose slowest hop is the fastest, and that hop's rate.
std::pair<std::vector<int>, double> best_ring(const NodeLinks& links) {
  std::vector<int> order(links.gpus), best;
  std::iota(order.begin(), order.end(), 0);
  double most = 0;
  do {
    double least = 1e18;
    for (int i = 0; i < links.gpus; ++i) {
      const double rate = links.between(order[i], order[(i + 1) % links.gpus]);
      least = std::min(least, rate > 0 ? rate : kPcie);
    }
    if (least <= most) continue;
    most = least;
    best = order;
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return {best, most};
}

constexpr std::uint64_t kQuarterGiB = 64 << 20;  // 256 MiB
constexpr double kQuarterGiBits = kQuarterGiB * 32.0;

TEST(Blink, TakesTheTimeOfItsPackingOverWhicheverGpusAreLeft) {
  std::mt19937 random(1);
  for (const std::string_view node : named_node_links())
    for (int i = 0; i < 12; ++i) {
      const NodeLinks all = node_links(node);
      const std::vector<int> gpus = random_gpus(random, all.gpus, i == 0 ? 8 : 3);
      const NodeLinks links = links_among(all, gpus);
      if (!is_connected(graph_of(links))) continue;
      SCOPED_TRACE(std::string(node) + ::testing::PrintToString(gpus));
      for (const Func func : {Func::all_reduce, Func::broadcast, Func::reduce}) {
        const auto packing =
            pack_trees(graph_of(links), func == Func::all_reduce ? Ways::both : Ways::one, 0);
        const double played =
            kQuarterGiBits / seconds_played(job_on(links, func, "blink", kQuarterGiB));
        EXPECT_LE(played, packing->bound * (1 + 1e-6)) << name_of(func);
        EXPECT_GE(played, 0.9 * packing->rate()) << name_of(func);
      }
      const auto [order, rate] = best_ring(links);
      const double ring = seconds_played(
                       job_on(links_among(links, order), Func::all_reduce, "ring", kQuarterGiB)),
                   trees = seconds_played(job_on(links, Func::all_reduce, "blink", kQuarterGiB));
      const double gain = pack_trees(graph_of(links), Ways::both, 0)->rate() /
                          (rate * links.gpus / (2.0 * (links.gpus - 1)));
      EXPECT_NEAR(ring / trees, gain, 0.1 * gain);
    }
}

// GPUs 1, 4, 6 of a DGX-1V: 4 and 6 have a lane, 1 has none to them. So the ring is as fast as
// PCIe.
TEST(Blink, GoesOverPcieWhereLinksDoNotConnectTheGpus) {
  const NodeLinks links = links_among(node_links("dgx-1v"), {1, 4, 6});
  ASSERT_FALSE(is_connected(graph_of(links)));
  const double least = 2 * 2 / 3.0 * kQuarterGiBits / kPcie;
  EXPECT_NEAR(seconds_played(job_on(links, Func::all_reduce, "ring", kQuarterGiB)), least,
              0.01 * least);
  EXPECT_LT(seconds_played(job_on(links, Func::all_reduce, "blink", kQuarterGiB)), 1.06 * least);
}

// NCCL's search finds rings over all lanes of a whole node; GPU 5 of four has one neighbour, so
// that its ring goes over PCIe. Blink is about as fast, and several times as fast.
TEST(Blink, IsFasterThanNcclWhereNoRingHasLinks) {
  const auto against_nccl = [](const std::vector<int>& gpus) {
    const NodeLinks links = links_among(node_links("dgx-1v"), gpus);
    SmallJob nccl = job_on(links, Func::all_reduce, "auto", kQuarterGiB);
    nccl.spec.collectives.library = "nccl-2.28";
    nccl.spec.collectives.channels = 0;
    return seconds_played(nccl) /
           seconds_played(job_on(links, Func::all_reduce, "blink", kQuarterGiB));
  };
  EXPECT_NEAR(against_nccl({0, 1, 2, 3, 4, 5, 6, 7}), 0.96, 0.05);
  EXPECT_NEAR(against_nccl({0, 1, 2, 5}), 5.95, 0.3);
}

// A message takes the link of its two GPUs, or, without one, their ports.
TEST(GpuLinks, CarryMessagesAtTheirOwnRates) {
  NodeLinks links = unlinked("three", 3);
  links.connect(0, 1, 8e9);
  links.connect(0, 2, 4e9);
  SmallJob job = job_on(links, Func::barrier, "auto", 0);
  job.spec.cluster.intra_node = {2e9, 3 * kPicosPerMicro};
  job.program().streams[0] = OpList{};
  const auto takes = [&](const std::vector<std::pair<int, int>>& sends) {
    SmallJob own = job;
    testing::with_sends(own, sends, 250'000);  // a megabyte: 1, 2 and 4 ms
    return seconds_played(own);
  };
  EXPECT_DOUBLE_EQ(takes({{0, 1}}), 1e-3 + 3e-6);
  EXPECT_DOUBLE_EQ(takes({{0, 2}}), 2e-3 + 3e-6);
  EXPECT_DOUBLE_EQ(takes({{1, 2}}), 4e-3 + 3e-6);
}

// And sends what the plan says.
TEST(GpuLinks, ACallInsideANodeTakesAsLongAsItsMessages) {
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    const NodeLinks all = node_links(test::one_of<const char*>(random, {"dgx-1p", "dgx-1v"}));
    const NodeLinks links = links_among(all, random_gpus(random, all.gpus, 2));
    const Func func = test::one_of(random, {Func::all_reduce, Func::broadcast, Func::reduce});
    const char* algorithm = test::one_of<const char*>(random, {"blink", "blink", "generic/auto"});
    SmallJob job =
        job_on(links, func, algorithm, test::one_of<std::uint64_t>(random, {1, 1000, 300'000}),
               static_cast<GroupRank>(random() % links.gpus));
    job.spec.collectives.slice_bytes = test::one_of(random, {0, 5000});
    job.spec.collectives.credits = test::one_of(random, {0, 2});
    const double messages = seconds_played(job);
    job.spec.fabric.inside_node = InsideNode::model;
    EXPECT_EQ(seconds_played(job), messages) << i;
    const TrafficPlan plan = plan_traffic(job.spec, job.workload);
    const Result result = job.run();
    EXPECT_EQ(result.intra_node_bytes_per_iteration, static_cast<double>(plan.intra_bytes));
    EXPECT_EQ(result.intra_node_messages_per_iteration, static_cast<double>(plan.intra_messages));
  }
}

// Groups on GPUs of their own take their own time.
TEST(GpuLinks, GroupsOnOtherGpusTakeAnotherTime) {
  NodeLinks links = unlinked("pairs", 4);
  links.connect(0, 1, 80e9);
  links.connect(2, 3, 8e9);
  for (const InsideNode how : {InsideNode::model, InsideNode::messages}) {
    SmallJob job = job_on(links, Func::all_reduce, "blink", 10'000'000);
    job.spec.fabric.inside_node = how;
    job.workload.groups = {{0, {WorldRank(0), WorldRank(1)}}, {0, {WorldRank(2), WorldRank(3)}}};
    EXPECT_NEAR(seconds_played(job), 0.04, 0.004);
    job.workload.groups = {{0, {WorldRank(0), WorldRank(1)}}};
    job.workload.roles.push_back({"idle", {Program{{"compute"}, {{}}, {"op"}, 0}}});
    job.workload.role_of[WorldRank(2)] = job.workload.role_of[WorldRank(3)] = 1;
    EXPECT_NEAR(seconds_played(job), 0.004, 0.0004);
  }
}

// Real data, in memory, over links of random nodes.
TEST(Blink, SumsRightOnNodesWithLinks) {
  std::mt19937 random(1);
  for (int i = 0; i < 30; ++i) {
    const int nodes = test::one_of(random, {1, 1, 2, 3}), gpus = 1 + static_cast<int>(random() % 6);
    SmallJob job(nodes, gpus, test::one_of(random, {FabricKind::memory, FabricKind::virtual_time}));
    job.spec.cluster.links = std::make_shared<const NodeLinks>(
        links_among(node_links("dgx-1v"), random_gpus(random, 8, gpus)));
    if (job.spec.cluster.links->gpus != gpus)
      job.spec.cluster.links = std::make_shared<const NodeLinks>(
          links_among(node_links("dgx-1v"), std::vector<int>{0, 3, 4, 7, 5, 1}));
    job.spec.run.verify = true;
    job.spec.collectives.slice_bytes = test::one_of(random, {0, 5000});
    job.spec.collectives.credits = test::one_of(random, {0, 1});
    for (const Func func : {Func::all_reduce, Func::broadcast, Func::reduce}) {
      job.spec.collectives.algorithm(func) = "blink";
      job.collective(
          func, test::one_of<std::uint64_t>(random, {1, 1001, 200'003}),
          test::one_of(random, {DataType::int32, DataType::float32}),
          func == Func::all_reduce ? 0 : static_cast<GroupRank>(random() % (nodes * gpus)));
    }
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "") << i;
    ASSERT_TRUE(result.verify);
    EXPECT_EQ(result.verify->wrong_elements, 0u) << i;
    EXPECT_GT(result.verify->checked_elements, 0u) << i;
  }
}

}  // namespace
}  // namespace ghostrank
