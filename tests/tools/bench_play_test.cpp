// Collectives and patterns played in virtual time, against results computed by hand: a step takes
// the latency plus the time of its bytes at the NIC's rate.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "emulator/engine.h"
#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/workload/traffic_pattern.h"
#include "tests/world_ranks.h"
#include "tools/verbs/bench/play.h"
#include "tools/verbs/bench/split.h"
#include "tools/verbs/bench/table.h"

namespace ghostrank {
namespace {

constexpr double kLatency = 2e-6, kBytesPerSecond = 50e9;  // 400 Gb/s
constexpr double kRounding = 1e-9;                         // to picoseconds

LoadedJob virtual_job(int nodes, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides{"fabric.kind=virtual",
                                     "cluster.nodes=" + std::to_string(nodes)};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return load_cluster_job("cluster: {gpus_per_node: 1, nics_per_node: 1}", overrides);
}

// Plays the phases; returns the last one's result.
Result play(const LoadedJob& job, const Workload& workload, const std::vector<Phase>& phases,
            const RunOptions& options = {}) {
  const auto control = Control::meet(World{});
  Observer nobody;
  Session session(job, workload, *control, options, nobody);
  Result result;
  for (const Phase& phase : phases) result = session.play(phase);
  return result;
}

double time_of(Func func, int ranks, std::uint64_t count, int calls,
               const std::vector<std::string>& more = {}) {
  const LoadedJob job = virtual_job(ranks, more);
  const Workload w = collective_phases({func, ranks, {{count}}});
  return call_seconds(play(job, w, {{0, 0, calls, false}}).iterations, 1);
}

TEST(BenchInVirtualTime, ARingAllReduceTakesTwiceRanksLessOneSteps) {
  for (const int n : {2, 5, 8, 64}) {
    const auto count = static_cast<std::uint64_t>(n) * 1000;
    const double step = kLatency + 4000 / kBytesPerSecond;
    EXPECT_NEAR(time_of(Func::all_reduce, n, count, 7), 2 * (n - 1) * step, kRounding) << n;
  }
}

TEST(BenchInVirtualTime, AllGatherAndReduceScatterTakeHalfOfIt) {
  const double step = kLatency + 4096 / kBytesPerSecond;
  EXPECT_NEAR(time_of(Func::all_gather, 16, 1024, 3), 15 * step, kRounding);
  EXPECT_NEAR(time_of(Func::reduce_scatter, 16, 1024, 3), 15 * step, kRounding);
}

TEST(BenchInVirtualTime, SendrecvIsOneMessageToTheNextRank) {
  EXPECT_NEAR(time_of(Func::send_recv, 6, 1 << 20, 4), kLatency + 4.0 * (1 << 20) / kBytesPerSecond,
              kRounding);
}

TEST(BenchInVirtualTime, ABarrierTakesTheLatencyOfItsRounds) {
  EXPECT_NEAR(time_of(Func::barrier, 32, 0, 3), 5 * kLatency, kRounding);
}

TEST(BenchInVirtualTime, TheTimeOfACallIsThatOfTheRanksAskedFor) {
  // One level of a binomial tree: the root is done when it has sent, the other rank one message
  // later.
  const LoadedJob job = virtual_job(2);
  const Workload w = collective_phases({Func::broadcast, 2, {{250'000}}});
  const std::vector<IterationReport> one = play(job, w, {{0, 0, 1, false}}).iterations;
  const double message = kLatency + 1e6 / kBytesPerSecond;
  EXPECT_NEAR(call_seconds(one, 0), 0, kRounding);
  EXPECT_NEAR(call_seconds(one, 1), message / 2, kRounding);
  EXPECT_NEAR(call_seconds(one, 2), 0, kRounding);
  EXPECT_NEAR(call_seconds(one, 3), message, kRounding);
  EXPECT_EQ(call_seconds({}, 1), 0);
}

TEST(BenchSession, PhasesPlayTheirOwnProgramsWhateverCameBefore) {
  const LoadedJob job = virtual_job(4);
  const Workload w = collective_phases({Func::all_reduce, 4, {{400}, {4'000'000}}});
  const auto seconds = [](std::uint64_t bytes) {
    return 6 * (kLatency + static_cast<double>(bytes) / 4 / kBytesPerSecond);
  };
  const Result small = play(job, w, {{1, 2, 3, false}, {0, 1, 2, false}});
  EXPECT_EQ(small.iterations.size(), 2u);
  EXPECT_NEAR(call_seconds(small.iterations, 1), seconds(1600), kRounding);
  EXPECT_NEAR(small.wire_bytes_per_iteration, 6 * 1600, 1e-6);
  const Result large = play(job, w, {{0, 0, 1, false}, {1, 0, 1, false}});
  EXPECT_NEAR(call_seconds(large.iterations, 1), seconds(16'000'000), kRounding);
}

TEST(BenchSession, BlocksOfAVVariantAreUnevenAndRight) {
  const LoadedJob job = virtual_job(5, {"run.verify=true"});
  CollectivePhases phases{Func::all_to_all_v, 5, {{1000}}};
  phases.imbalance = 0.5;
  const Workload w = collective_phases(phases);
  const auto [least, most] = std::minmax_element(w.counts[0]->begin(), w.counts[0]->end());
  EXPECT_GE(*least, 500u);
  EXPECT_LE(*most, 1500u);
  EXPECT_LT(*least, 900u);
  EXPECT_GT(*most, 1100u);
  const Result checked = play(job, w, {{0, 0, 1, true}});
  EXPECT_EQ(checked.verify->wrong_elements, 0u);
  EXPECT_EQ(checked.verify->checked_elements,
            std::accumulate(w.counts[0]->begin(), w.counts[0]->end(), std::uint64_t{0}));
}

TEST(BenchSession, APhaseIsVerifiedWhereItAsksForIt) {
  const LoadedJob job = virtual_job(4, {"run.verify=true"});
  const Workload w = collective_phases({Func::all_gather, 4, {{100}}});
  EXPECT_FALSE(play(job, w, {{0, 0, 2, false}}).verify);
  const Result checked = play(job, w, {{0, 0, 2, false}, {0, 0, 2, true}});
  ASSERT_TRUE(checked.verify);
  EXPECT_EQ(checked.verify->checked_elements, 2u * 4 * 400);
  EXPECT_EQ(checked.verify->wrong_elements, 0u);
}

TEST(BenchPatterns, InAnIncastOneNicReceivesWhatAllSend) {
  const LoadedJob job = virtual_job(9);
  const Workload w = incast_phases(9, world_ranks({1, 2, 3, 4, 5, 6, 7, 8}), {1, 8}, 1'000'000);
  const Result result = play(job, w, {{1, 0, 3, false}});
  // Requests leave one after the other; the first answer takes its latency, then the answers queue.
  const double expected = 2 * kLatency + 8 * 1e6 / kBytesPerSecond;
  ASSERT_EQ(result.iterations.size(), 3u);
  for (const IterationReport& i : result.iterations)
    EXPECT_NEAR(i.rank0_seconds, expected, kRounding);
}

TEST(BenchPatterns, AFlowRunsAtTheRateOfItsNics) {
  const LoadedJob job = virtual_job(8);
  const Workload w = permutation_phases(random_cycle(8, 3), {1'000'000}, 10);
  RunOptions options;
  options.trace_ranks = world_ranks(8);
  const Result result = play(job, w, {{0, 0, 1, false}}, options);
  VectorBy<WorldRank, double> end(8);
  for (const Span& span : result.spans) {
    if (span.label == kFlowLabel) {
      double& last = end[span.rank];
      last = std::max(last, seconds(span.start + span.duration));
    }
  }
  for (const double e : end) EXPECT_NEAR(e, kLatency + 10 * 1e6 / kBytesPerSecond, kRounding);
}

TEST(BenchPatterns, APairBouncesAByteThereAndBackThoughItIsItsOwnOpposite) {
  // In a pair, the next rank is also the previous one: requests and answers must not mix.
  const LoadedJob job = virtual_job(2);
  const Workload w = pair_phases(2, 1 << 20, 5);
  RunOptions options;
  options.trace_ranks = world_ranks(2);
  const Result result = play(job, w, {{1, 0, 1, false}}, options);
  double end = 0;
  for (const Span& span : result.spans) {
    if (span.label == kFlowLabel) end = std::max(end, seconds(span.start + span.duration));
  }
  EXPECT_NEAR(end, 5 * 2 * kLatency, 5 * kRounding);
}

TEST(Split, DealsRanksOutAsNcclTestsDoes) {
  using Groups = std::vector<std::vector<WorldRank>>;
  const WorldRank zero(0), one(1), two(2), three(3);
  const Groups apart{{zero, two}, {one, three}}, together{{zero, one}, {two, three}};
  for (const char* rule : {"MOD 2", "mod2", "%2", "AND 0x1", "&0b1", "AND 1"})
    EXPECT_EQ(split_ranks(rule, 4), apart) << rule;
  for (const char* rule : {"DIV 2", "/ 2", "OR 0x1", "|1"})
    EXPECT_EQ(split_ranks(rule, 4), together) << rule;
  for (const char* rule : {"", "MOD", "MOD 0", "DIV 0", "XOR 1", "AND 0x", "AND 1 2", "AND -1"})
    EXPECT_THROW(split_ranks(rule, 4), Error) << rule;
  EXPECT_THROW(split_ranks("MOD 3", 4), Error) << "groups of 2 and of 1";
}

}  // namespace
}  // namespace ghostrank
