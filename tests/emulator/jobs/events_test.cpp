// Events of a job: ranks that are slow for a time, marks, and what a result says of them.
#include "tests/emulator/events.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/shard/ranks/slow_ranks.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

using testing::mark;
using testing::slow;
using testing::SmallJob;
using testing::with_events;

constexpr Picoseconds kMs = kPicosPerMilli;

// Four ranks on nodes of their own compute for 10 ms, then reduce in a ring; as flows all end at
// once.
SmallJob ring_job(FabricKind kind = FabricKind::virtual_time) {
  SmallJob job(4, 1, kind);
  job.spec.run.iterations = 4;
  if (kind == FabricKind::virtual_time) job.spec.fabric.network = NetworkModel::flow;
  job.spec.collectives.algorithm(Func::all_reduce) = "ring";
  job.compute(10 * kMs).collective(Func::all_reduce, 100'000);
  return job;
}

std::vector<double> steps_of(const Result& result) {
  EXPECT_EQ(result.interrupted, "");
  std::vector<double> out;
  for (const IterationReport& one : result.iterations) out.push_back(one.seconds);
  return out;
}

TEST(SlowRanks, TakeTimesAsLongForWhatBeginsMeanwhile) {
  JobEvents events{{slow(1, 1.5, 100, 50), slow(1, 2, 120), slow(3, 4, 0)}};
  events.all[2].iteration = 2;
  events.all[2].iterations = 2;
  const SlowRanks ranks(events);
  EXPECT_TRUE(ranks.any());
  EXPECT_FALSE(SlowRanks({{mark("x", 0)}}).any());
  const auto factor = [&](int rank, Picoseconds at, std::uint32_t iteration) {
    return ranks.slowed(WorldRank(rank), at, iteration, 1000);
  };
  EXPECT_EQ(factor(0, 100, 2), 1000);
  EXPECT_EQ(factor(1, 99, 2), 1000);
  EXPECT_EQ(factor(1, 100, 2), 1500);
  EXPECT_EQ(factor(1, 120, 2), 3000);  // both
  EXPECT_EQ(factor(1, 150, 2), 2000);
  EXPECT_EQ(factor(3, 0, 1), 1000);
  EXPECT_EQ(factor(3, 0, 2), 4000);
  EXPECT_EQ(factor(3, 0, 3), 4000);
  EXPECT_EQ(factor(3, 0, 4), 1000);
  EXPECT_EQ(ranks.slowed(WorldRank(1), 100, 0, 3), 5);  // rounded
}

// The others wait for the slow rank, so the whole step is longer by what its compute is. Message by
// message the slow rank finds its first message there and so ends a hop of the ring's six before
// the last one, with which its next compute begins.
TEST(SlowRanks, HoldUpTheirRing) {
  for (const NetworkModel network :
       {NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet}) {
    SmallJob job = ring_job();
    job.spec.fabric.network = network;
    const double step = steps_of(job.run()).at(0);
    // From the middle of the second step on: its compute has begun.
    const auto middle = static_cast<Picoseconds>(1.5e12 * step);
    const std::vector<double> steps = steps_of(with_events(job, {slow(2, 1.5, middle)}).run());
    EXPECT_NEAR(steps.at(0), step, 1e-11);
    EXPECT_NEAR(steps.at(1), step, 1e-11);
    EXPECT_NEAR(steps.at(2), step + 5e-3, 1e-11);
    const double hop = (step - 10e-3) / 6;
    if (network == NetworkModel::packet)  // of two parts
      EXPECT_NEAR(steps.at(3), step + 5e-3 - hop, 0.1 * hop);
    else
      EXPECT_NEAR(steps.at(3), step + 5e-3 - (network == NetworkModel::flow ? 0 : hop), 1e-11);
    const std::vector<double> passing =
        steps_of(with_events(job, {slow(2, 1.5, 0, 5 * kMs)}).run());
    EXPECT_NEAR(passing.at(0), step + 5e-3, 1e-11);
    EXPECT_NEAR(passing.at(1), step, 1e-11);
  }
}

TEST(SlowRanks, OfAnIterationAreSlowInThatOne) {
  SmallJob job = ring_job();
  const double step = steps_of(job.run()).at(0);
  JobEvent event = slow(1, 2, 0);
  event.iteration = 1;
  event.iterations = 2;
  const std::vector<double> steps = steps_of(with_events(job, {event}).run());
  for (const std::size_t i : {0u, 1u, 2u, 3u})
    EXPECT_NEAR(steps.at(i), step + (i == 1 || i == 2 ? 10e-3 : 0), 1e-11) << i;
}

// Compute is counted as it is asked for, so real time says the same, to the last bit.
TEST(SlowRanks, ComputeAsLongOnEveryFabric) {
  for (const FabricKind kind : {FabricKind::virtual_time, FabricKind::memory}) {
    SmallJob job = ring_job(kind);
    job.spec.dilation = kind == FabricKind::virtual_time ? 0 : 1;
    job.spec.run.iterations = 2;
    JobEvent event = slow(3, 1.6, 0);
    event.iteration = 1;
    const Result result = with_events(job, {event}).run();
    ASSERT_EQ(result.iterations.size(), 2u);
    EXPECT_DOUBLE_EQ(result.iterations[0].compute_seconds, 10e-3);
    EXPECT_DOUBLE_EQ(result.iterations[1].compute_seconds, (3 * 10e-3 + 16e-3) / 4);
    EXPECT_GE(result.iterations[1].seconds, 16e-3);
  }
}

struct WarmUps : Observer {
  std::vector<double> seconds;
  void on_iteration(int index, const IterationReport& report) override {
    if (index < 0) seconds.push_back(report.seconds);
  }
};

TEST(SlowRanks, AreNotSlowInWarmUps) {
  SmallJob job = ring_job();
  job.spec.run.warmup = 2;
  const double step = steps_of(job.run()).at(0);
  WarmUps warm_ups;
  const Result result = with_events(job, {slow(0, 2, 0)}).run(&warm_ups);
  ASSERT_EQ(warm_ups.seconds.size(), 2u);
  for (const double seconds : warm_ups.seconds) EXPECT_NEAR(seconds, step, 1e-11);
  for (const double seconds : steps_of(result)) EXPECT_NEAR(seconds, step + 10e-3, 1e-11);
}

// A timer's pace is no work; computations of every stream are.
TEST(SlowRanks, WorkMoreSlowlyOnEveryStreamAndKeepTheirTimers) {
  SmallJob job(1, 1, FabricKind::virtual_time);
  ProgramBuilder out({"compute", "other"});
  out.compute(0, "work", 4 * kMs);
  out.compute(1, "work", 5 * kMs);
  job.program() = out.take();
  with_events(job, {slow(0, 3, 0)});
  EXPECT_NEAR(steps_of(job.run()).at(0), 15e-3, 1e-12);
  job.program().streams[1] = {};
  Op timer;
  timer.duration = 7 * kMs;
  timer.pace = true;
  job.program().streams[0].push_back(timer);
  EXPECT_NEAR(steps_of(job.run()).at(0), 12e-3 + 7e-3, 1e-12);
}

TEST(SlowRanks, WithJitterAndCommunicationMultiply) {
  SmallJob job = ring_job();
  job.spec.run.jitter = 0.2;
  const Result plain = job.run();
  std::vector<JobEvent> all;
  for (int rank = 0; rank < 4; ++rank) all.push_back(slow(rank, 2, 0));
  const Result slowed = with_events(job, all).run();
  ASSERT_EQ(slowed.iterations.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GT(slowed.iterations[i].seconds, plain.iterations.at(i).seconds);
    EXPECT_NEAR(slowed.iterations[i].compute_seconds, 2 * plain.iterations[i].compute_seconds,
                1e-11);
  }
  // A call of 1 ms is in flight when stream 0 computes.
  SmallJob beside(2, 1, FabricKind::virtual_time);
  ProgramBuilder out({"compute", "other"});
  out.collective(1, "aside", Func::all_reduce, 0, DataType::float32, 10'000'000);
  out.compute(0, "work", kMs);
  beside.program() = out.take();
  beside.spec.run.compute_slowdown = 0.5;
  with_events(beside, {slow(0, 3, 0), slow(1, 3, 0)});
  EXPECT_NEAR(beside.run().iterations.at(0).compute_seconds, 4.5e-3, 1e-11);
}

TEST(SlowRanks, AreAlikeForAnyNumberOfShards) {
  SmallJob job(8, 2, FabricKind::virtual_time);
  job.spec.run.iterations = 3;
  job.compute(100 * kPicosPerMicro)
      .collective(Func::all_reduce, 50'000)
      .compute(30 * kPicosPerMicro)
      .collective(Func::all_to_all, 1000);
  with_events(job, {slow(3, 1.7, 150 * kPicosPerMicro, 200 * kPicosPerMicro),
                    slow(12, 2.5, 90 * kPicosPerMicro), slow(3, 1.1, 0)});
  testing::expect_alike_with_shards(job, {2, 4});
}

// ---- What a result says ----

TEST(Events, AreInTheResultWithTheirTimeAndIteration) {
  SmallJob job = ring_job();
  const double step = steps_of(job.run()).at(0);
  JobEvent third = mark("third", 0);
  third.iteration = 3;
  JobEvent straggler = slow(1, 2, static_cast<Picoseconds>(step * 1e12) / 2);
  straggler.what = "rank 1 x 2";
  const Result result =
      with_events(job, {third, mark("late", 1000 * kMs), mark("begin", 0), straggler}).run();
  ASSERT_EQ(result.events.size(), 3u);
  EXPECT_EQ(result.events[0].what, "begin");
  EXPECT_EQ(result.events[0].kind, "mark");
  EXPECT_EQ(result.events[0].at_s, 0);
  EXPECT_EQ(result.events[0].iteration, 0);
  EXPECT_FALSE(result.events[0].wall_s);
  EXPECT_EQ(result.events[1].kind, "slow");
  EXPECT_EQ(result.events[1].iteration, 0);
  EXPECT_EQ(result.events[2].what, "third");
  EXPECT_EQ(result.events[2].iteration, 3);
  EXPECT_NEAR(result.events[2].at_s, 3 * step + 2 * 10e-3, 1e-11);  // of the second and third
  EXPECT_NE(std::find(result.notes.begin(), result.notes.end(),
                      "events: 1 of 4 did not happen, because the run ended before"),
            result.notes.end());
}

TEST(Events, OfRealTimeSayTheWallTime) {
  SmallJob job = ring_job(FabricKind::memory);
  job.spec.run.iterations = 2;
  job.spec.dilation = 3;
  const Result result = with_events(job, {mark("x", 12 * kMs)}).run();
  ASSERT_EQ(result.events.size(), 1u);
  EXPECT_EQ(result.events[0].at_s, 12e-3);
  ASSERT_TRUE(result.events[0].wall_s);
  EXPECT_DOUBLE_EQ(*result.events[0].wall_s, 36e-3);
  EXPECT_EQ(result.events[0].iteration, result.iterations.at(0).seconds <= 12e-3 ? 1 : 0);
}

}  // namespace
}  // namespace ghostrank
