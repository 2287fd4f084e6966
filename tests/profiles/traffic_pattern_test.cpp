// Patterns of traffic: the senders and receivers.
#include "profiles/workload/traffic_pattern.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"

namespace ghostrank {
namespace {

TEST(RandomCycle, PassesThroughAllRanksAndComesBack) {
  for (const int ranks : {2, 3, 17, 1000}) {
    const std::vector<Rank> target = random_cycle(ranks, 42);
    Rank at = 0;
    int steps = 0;
    do {
      at = target[static_cast<std::size_t>(at)];
      ++steps;
    } while (at != 0 && steps <= ranks);
    EXPECT_EQ(steps, ranks);
  }
}

TEST(RandomCycle, IsTheSameForASeedAndAnotherForAnother) {
  EXPECT_EQ(random_cycle(100, 7), random_cycle(100, 7));
  EXPECT_NE(random_cycle(100, 7), random_cycle(100, 8));
}

TEST(Opposite, IsHalfTheRanksAwayBothWays) {
  EXPECT_EQ(opposite(6), (std::vector<Rank>{3, 4, 5, 0, 1, 2}));
}

TEST(TrafficPattern, EverySendHasItsReceive) {
  const std::vector<Rank> target = random_cycle(9, 5);
  const Workload w = permutation_phases(target, {8, 64}, 3);
  ASSERT_EQ(w.roles.size(), 9u);
  std::vector<int> sent(81), received(81);
  for (Rank r = 0; r < 9; ++r) {
    for (const auto& stream : w.roles[static_cast<std::size_t>(r)].iterations[1].streams) {
      for (const Op& op : stream) {
        const Rank peer = r + op.peer;
        EXPECT_EQ(op.count, 64u);
        if (op.kind == Op::Kind::send) ++sent[static_cast<std::size_t>(r * 9 + peer)];
        if (op.kind == Op::Kind::recv) ++received[static_cast<std::size_t>(peer * 9 + r)];
      }
    }
  }
  EXPECT_EQ(sent, received);
  for (Rank r = 0; r < 9; ++r) {
    EXPECT_EQ(sent[static_cast<std::size_t>(r * 9 + target[static_cast<std::size_t>(r)])], 3);
  }
}

TEST(ClusterJob, TakesEverythingButWhatIsTrained) {
  const LoadedJob job = load_cluster_job("cluster: {nodes: 4, gpus_per_node: 2}",
                                         {"fabric.kind=virtual", "run.seed=9"});
  EXPECT_EQ(job.spec.cluster.gpus(), 8);
  EXPECT_EQ(job.spec.fabric.kind, FabricKind::virtual_time);
  EXPECT_EQ(job.spec.run.seed, 9u);
  for (const char* key : {"model=gpt2-xl", "parallel.dp=2", "precision.gradients=bf16"})
    EXPECT_THROW(load_cluster_job("{}", {key}), Error) << key;
}

}  // namespace
}  // namespace ghostrank
