// Patterns of traffic: the senders and receivers.
#include "profiles/workload/traffic_pattern.h"

#include <gtest/gtest.h>

#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "tests/profiles/support.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

TEST(RandomCycle, PassesThroughAllRanksAndComesBack) {
  for (const int ranks : {2, 3, 17, 1000}) {
    const VectorBy<WorldRank, WorldRank> target = random_cycle(ranks, 42);
    WorldRank at;
    int steps = 0;
    do {
      at = target[at];
      ++steps;
    } while (at != WorldRank(0) && steps <= ranks);
    EXPECT_EQ(steps, ranks);
  }
}

TEST(RandomCycle, IsTheSameForASeedAndAnotherForAnother) {
  EXPECT_EQ(random_cycle(100, 7), random_cycle(100, 7));
  EXPECT_NE(random_cycle(100, 7), random_cycle(100, 8));
}

TEST(Opposite, IsHalfTheRanksAwayBothWays) {
  EXPECT_EQ(opposite(6).rows(), world_ranks({3, 4, 5, 0, 1, 2}));
}

TEST(TrafficPattern, EverySendHasItsReceive) {
  const VectorBy<WorldRank, WorldRank> target = random_cycle(9, 5);
  const Workload w = permutation_phases(target, {8, 64}, 3);
  ASSERT_EQ(w.roles.size(), 9u);
  std::map<std::pair<WorldRank, WorldRank>, int> sent, received;  // by source and target
  for (const WorldRank r : each<WorldRank>(9)) {
    for (const auto& stream : w.roles[r.index()].iterations[1].streams) {
      for (const Op& op : stream) {
        const WorldRank peer = r + op.peer;
        EXPECT_EQ(op.count, 64u);
        if (op.kind == Op::Kind::send) ++sent[{r, peer}];
        if (op.kind == Op::Kind::recv) ++received[{peer, r}];
      }
    }
  }
  EXPECT_EQ(sent, received);
  for (const WorldRank r : target.keys()) EXPECT_EQ((sent[{r, target[r]}]), 3);
}

TEST(ClusterJob, TakesEverythingButWhatIsTrained) {
  const LoadedJob job = load_cluster_job("cluster: {nodes: 4, gpus_per_node: 2}",
                                         {"fabric.kind=virtual", "run.seed=9"});
  EXPECT_EQ(job.spec.cluster.gpus(), 8);
  EXPECT_EQ(job.spec.fabric.kind, FabricKind::virtual_time);
  EXPECT_EQ(job.spec.run.seed, 9u);
  for (const std::string key : {"model=gpt2-xl", "parallel.dp=2", "precision.gradients=bf16"}) {
    const std::string error = test::error_of([&] { load_cluster_job("{}", {key}); });
    const std::string part = "unknown key '" + key.substr(0, key.find_first_of(".="));
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace ghostrank
