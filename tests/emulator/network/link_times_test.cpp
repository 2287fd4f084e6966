// When links are busy: a bounded number of parts of any length, and the same sums as the counts of
// links have.
#include "emulator/network/link_times.h"

#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

double sum(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(LinkTimes, KeepWhatWasBusyWhileTheirPartsGrow) {
  LinkTimes times(2);
  times.add(1, 100, 300);
  times.add(1, 1000, 3000, 0.5);  // across parts
  EXPECT_EQ(times.width(), 1024);
  EXPECT_FLOAT_EQ(times.of(1)[0], 200 + 12);
  EXPECT_FLOAT_EQ(times.of(1)[1], 512);
  EXPECT_FLOAT_EQ(times.of(1)[2], 476);
  EXPECT_TRUE(times.of(0).empty());
  times.add(0, 1024 * LinkTimes::kBins * 5, 1024 * LinkTimes::kBins * 5 + 10);
  EXPECT_EQ(times.width(), 8 * 1024);
  EXPECT_FLOAT_EQ(times.of(1)[0], 1200);
  EXPECT_FLOAT_EQ(times.of(0)[5 * LinkTimes::kBins / 8], 10);
  EXPECT_EQ(times.of(0).size(), std::size_t{LinkTimes::kBins});
}

TEST(LinkTimes, MergeWhateverTheirWidths) {
  LinkTimes coarse(1), fine(2);
  coarse.add(0, 1024 * LinkTimes::kBins, 1024 * LinkTimes::kBins + 100);
  fine.add(0, 0, 2048);
  fine.add(1, 3000, 3100);
  for (const bool swapped : {false, true}) {
    LinkTimes all = swapped ? fine : coarse;
    all.merge(swapped ? coarse : fine);
    EXPECT_EQ(all.width(), 2048);
    EXPECT_FLOAT_EQ(all.of(0)[0], 2048);
    EXPECT_FLOAT_EQ(all.of(0)[LinkTimes::kBins / 2], 100);
    EXPECT_FLOAT_EQ(all.of(1)[1], 100);
  }
}

// Two leaves, calls with pauses between them, and more shards than one where there may be.
TEST(LinkTimes, AddUpToTheLoadOfTheLinks) {
  for (const NetworkModel network :
       {NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet}) {
    SmallJob job(4, 1, FabricKind::virtual_time);
    job.spec.cluster.nic = {100e9, 2 * kPicosPerMicro};
    job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
    job.spec.cluster.topology.leaves = 2;
    job.spec.cluster.topology.spines = 2;
    job.spec.cluster.topology.oversubscription = 2;
    job.spec.fabric.network = network;
    job.spec.run.iterations = 3;
    job.spec.run.shards = 2;
    job.compute(40 * kPicosPerMicro).collective(Func::all_reduce, 100'000);
    RunOptions options;
    options.link_times = true;
    const Result result = job.run(nullptr, options);
    ASSERT_TRUE(result.link_history && result.network);
    const LinkHistory& history = *result.link_history;
    double lasted = 0;
    for (const IterationReport& i : result.iterations) lasted += i.seconds;
    EXPECT_EQ(history.used, history.links.size());
    std::map<std::string, double> busy;
    for (std::size_t i = 0; i < history.links.size(); ++i)
      busy[history.links[i]] = sum(history.busy[i]) * history.bin_seconds / lasted;
    for (const LinkLoad& link : result.network->hottest)
      EXPECT_NEAR(busy[link.link], link.utilisation, 1e-4 * link.utilisation + 1e-9)
          << link.link << ' ' << static_cast<int>(network);
    EXPECT_GT(result.network->hottest.front().utilisation, 0.01);
    // While all ranks compute no link is busy.
    EXPECT_EQ(history.busy.front().front(), 0.0f);
    EXPECT_GE(static_cast<int>(history.busy.front().size()), LinkTimes::kBins / 2);
    EXPECT_FALSE(job.run().link_history.has_value());
  }
}

}  // namespace
}  // namespace ghostrank
