// Runs with an open end: run.duration and run.until.
#include "emulator/run_length.h"

#include <cmath>
#include <csignal>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "emulator/result/kept_iterations.h"
#include "emulator/segment_series.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

RunEnd until(double ci95, double max_seconds = 600) {
  return {.duration = 0, .ci95 = ci95, .max_seconds = max_seconds};
}
RunEnd for_seconds(double seconds) { return {.duration = seconds}; }

// Plays parts whose iterations take `wall` seconds and have steps that `step` draws.
struct Played {
  std::int64_t iterations = 0;
  double wall = 0;
  int parts = 0;
};
template <typename Step>
Played play(RunLength& length, double wall, const Step& step, bool virtual_time = false) {
  Played played;
  double emulated = 0;
  while (const std::uint32_t count = length.next(played.wall, emulated, virtual_time ? 0 : wall)) {
    ++played.parts;
    for (std::uint32_t i = 0; i < count; ++i) {
      const double seconds = step();
      length.iteration_ended(seconds);
      emulated += seconds;
    }
    played.iterations += count;
    played.wall += count * wall;
    EXPECT_LT(played.parts, 10'000);
  }
  return played;
}

TEST(RunLength, UntilTheIntervalIsNarrowPlaysNoMoreThanItNeeds) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> step(1, 0.1);
  RunLength length(until(0.01), 30, false, false);
  const Played played = play(length, 0.01, [&] { return step(random); });
  EXPECT_EQ(length.ended_by(), EndedBy::interval);
  EXPECT_LE(*length.half_width(), 0.01);
  // 1.96 * 0.1 / sqrt(n) <= 0.01 from n = 384 on.
  EXPECT_GT(played.iterations, 300);
  EXPECT_LT(played.iterations, 520);
}

TEST(RunLength, UntilPlaysTheFewestAlsoWhereTheyAreAllAlike) {
  RunLength length(until(0.01), 30, false, false);
  EXPECT_EQ(play(length, 0.01, [] { return 2.0; }).iterations, 30);
  EXPECT_EQ(length.ended_by(), EndedBy::interval);
}

TEST(RunLength, UntilEndsWithTheFewestWhereNothingVaries) {
  RunLength length(until(0.0001), 30, true, true);
  int i = 0;
  EXPECT_EQ(play(
                length, 5, [&] { return 1.0 + i++ % 2; }, true)
                .iterations,
            30);
  EXPECT_EQ(length.ended_by(), EndedBy::deterministic);
  EXPECT_NE(length.why().find("nothing varies by chance"), std::string::npos);
}

TEST(RunLength, UntilKeepsToItsWallTime) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> step(1);
  RunLength length(until(0.001, 100), 30, false, false);
  const Played played = play(length, 0.5, [&] { return step(random); });
  EXPECT_EQ(length.ended_by(), EndedBy::max_seconds);
  EXPECT_LE(played.wall, 100);
  EXPECT_GT(played.wall, 99);
  EXPECT_NE(length.why().find("run.until.max_seconds ended the run"), std::string::npos);
}

TEST(RunLength, UntilPlaysNoMoreThanAResultKeeps) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> step(1);
  RunLength length(until(0.0001, 1e7), 30, false, false);
  const Played played = play(length, 1e-6, [&] { return step(random); });
  EXPECT_EQ(length.ended_by(), EndedBy::iterations);
  EXPECT_EQ(played.iterations, static_cast<std::int64_t>(KeptIterations::kMost));
}

TEST(RunLength, ADurationEndsInTheIterationThatCrossesIt) {
  RunLength length(for_seconds(60), 5, false, false);
  const Played played = play(length, 0.7, [] { return 0.1; });
  EXPECT_EQ(length.ended_by(), EndedBy::duration);
  EXPECT_GE(played.wall, 60);
  EXPECT_LT(played.wall, 60.7 + 1e-9);
  EXPECT_GT(played.parts, 3) << "of ten seconds";
}

TEST(RunLength, ADurationPlaysTheFewestWhateverItIs) {
  RunLength length(for_seconds(1), 5, false, false);
  EXPECT_EQ(play(length, 3, [] { return 1.0; }).iterations, 5);
}

TEST(RunLength, InVirtualTimeADurationIsEmulatedAndPartsDoNotDependOnTheMachine) {
  for (const double wall : {1e-6, 1.0, 100.0}) {
    RunLength length(for_seconds(60), 5, true, false);
    const Played played = play(
        length, wall, [] { return 0.7; }, true);
    EXPECT_EQ(played.iterations, 86);
    EXPECT_EQ(played.parts, 2);
  }
}

TEST(RunLength, SaysHowMuchIsOver) {
  RunLength length(for_seconds(100), 1, false, false);
  length.iteration_ended(1);
  EXPECT_EQ(length.fraction(1, 25), 0.25);
  RunLength open(until(0.01), 2, false, false);
  EXPECT_EQ(open.fraction(1, 0), 0.5);
  for (const double step : {0.9, 1.0, 1.1, 1.0}) open.iteration_ended(step);
  const double near = 0.01 / *open.half_width();
  EXPECT_DOUBLE_EQ(open.fraction(4, 0), near * near);
}

TEST(RunningMean, HasTheIntervalOfAllSamplesAtOnce) {
  RunningMean mean;
  EXPECT_FALSE(mean.half_width());
  const std::vector<double> samples{1.5, 2.25, 0.75, 3, 1.125};
  double sum = 0, squares = 0;
  for (const double x : samples) mean.add(x), sum += x;
  const double average = sum / 5;
  for (const double x : samples) squares += (x - average) * (x - average);
  EXPECT_DOUBLE_EQ(mean.mean(), average);
  EXPECT_NEAR(*mean.half_width(), 2.7764 * std::sqrt(squares / 4 / 5) / average, 1e-12);
}

TEST(KeptIterations, AreAllWhileTheyAreFewThenAFairSample) {
  KeptIterations kept;
  constexpr int kAll = 1'000'000;
  for (int i = 0; i < kAll; ++i) {
    IterationReport one;
    one.seconds = i % 64 == 0 ? 64 : 1;  // what repeats
    kept.add(one);
    if (i + 1 == static_cast<int>(KeptIterations::kMost)) {
      EXPECT_EQ(kept.one_in(), 1u);
      EXPECT_EQ(kept.iterations().size(), KeptIterations::kMost);
    }
  }
  EXPECT_EQ(kept.count(), static_cast<std::uint64_t>(kAll));
  EXPECT_EQ(kept.one_in(), 16u);
  EXPECT_NEAR(static_cast<double>(kept.iterations().size()) * 16 / kAll, 1, 0.02);
  ASSERT_EQ(kept.numbers().size(), kept.iterations().size());
  EXPECT_TRUE(std::ranges::is_sorted(kept.numbers()));
  for (std::size_t i = 0; i < kept.numbers().size(); ++i)
    ASSERT_EQ(kept.iterations()[i].seconds, kept.numbers()[i] % 64 == 0 ? 64 : 1);
  // Three standard deviations of the mean of so many draws.
  EXPECT_NEAR(mean_seconds(kept.iterations()), (64 + 63) / 64.0, 0.1);
}

TEST(SegmentSeries, OfManyIterationsKeepNoListByIteration) {
  SegmentSeries series;
  for (int part = 0; part < 3; ++part) {
    SegmentReport report;
    report.interfaces.push_back({});
    report.interfaces[0].tx_bytes = 10;
    report.interfaces[0].iterations.resize(40'000);
    series.add(SegmentReport(report), 40'000, {report}, {}, 1);
  }
  const std::vector<SegmentReport> reports = series.take_reports();
  EXPECT_EQ(reports[0].interfaces[0].tx_bytes, 30u);
  EXPECT_TRUE(reports[0].interfaces[0].iterations.empty());
}

// ---- Runs

SmallJob steps(FabricKind kind, double jitter) {
  SmallJob job(2, 1, kind);
  job.spec.run.warmup = 1;
  job.spec.run.jitter = jitter;
  job.compute(kPicosPerMilli).collective(Func::all_reduce, 1000);
  return job;
}

TEST(AnOpenEnd, InVirtualTimePlaysTheSameIterationsAsAGivenNumber) {
  SmallJob open = steps(FabricKind::virtual_time, 0.3);
  open.spec.run.iterations = 30;
  open.spec.run.end = until(0.05);
  const Result a = open.run();
  ASSERT_TRUE(a.open_end);
  EXPECT_EQ(a.open_end->by, EndedBy::interval);
  EXPECT_EQ(a.open_end->iterations, a.iterations.size());
  EXPECT_GT(a.iterations.size(), 100u) << "0.3 / sqrt(n) * 1.96 = 0.05 at 138";
  SmallJob given = steps(FabricKind::virtual_time, 0.3);
  given.spec.run.iterations = static_cast<int>(a.iterations.size());
  const Result b = given.run();
  ASSERT_EQ(b.iterations.size(), a.iterations.size());
  EXPECT_EQ(testing::ledger_text(a), testing::ledger_text(b));
  for (std::size_t i = 0; i < a.iterations.size(); ++i)
    EXPECT_EQ(a.iterations[i].compute_seconds, b.iterations[i].compute_seconds) << i;
}

TEST(AnOpenEnd, WhereNothingVariesIsTheFewestIterations) {
  SmallJob job = steps(FabricKind::virtual_time, 0);
  job.spec.run.iterations = 30;
  job.spec.run.end = until(0.01);
  const Result result = job.run();
  EXPECT_EQ(result.iterations.size(), 30u);
  EXPECT_EQ(result.open_end->by, EndedBy::deterministic);
}

TEST(AnOpenEnd, OfADurationInVirtualTimeIsEmulated) {
  SmallJob job = steps(FabricKind::virtual_time, 0.2);
  job.spec.run.iterations = 3;
  job.spec.run.end = for_seconds(0.5);  // of about a millisecond each
  const Result result = job.run();
  double sum = 0;
  for (const IterationReport& i : result.iterations) sum += i.seconds;
  EXPECT_GE(sum, 0.5 - 1e-9);
  EXPECT_LT(sum - result.iterations.back().seconds, 0.5 + 0.05);
  EXPECT_EQ(result.open_end->by, EndedBy::duration);
}

TEST(AnOpenEnd, DoesNotDependOnTheNumberOfShards) {
  const auto play = [](int shards) {
    SmallJob job(4, 1, FabricKind::virtual_time);
    job.spec.run.shards = shards;
    job.spec.run.jitter = 0.3;
    job.spec.run.iterations = 20;
    job.spec.run.end = until(0.05);
    job.compute(kPicosPerMilli).collective(Func::all_reduce, 1000);
    return job.run();
  };
  const Result one = play(1), three = play(3);
  ASSERT_EQ(one.iterations.size(), three.iterations.size());
  for (std::size_t i = 0; i < one.iterations.size(); ++i)
    EXPECT_EQ(one.iterations[i].seconds, three.iterations[i].seconds) << i;
}

TEST(AnOpenEnd, OfADurationInRealTimeIsWallTime) {
  SmallJob job = steps(FabricKind::memory, 0);
  job.spec.run.iterations = 2;
  job.spec.run.end = for_seconds(0.5);  // steps of 20 ms each
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  EXPECT_GE(result.played_wall_seconds, 0.5);
  EXPECT_LT(result.played_wall_seconds, 2);
  EXPECT_GT(result.iterations.size(), 5u);
  EXPECT_EQ(result.iterations_asked, 0);
}

// Stops the run from process 0 after some iterations.
class Stopper final : public Observer {
 public:
  Stopper(Control& control, int after) : control_(control), after_(after) {}
  void on_play(int iterations, bool measured) override {
    if (measured) {
      EXPECT_EQ(iterations, 0) << "open";
    }
  }
  void on_precision(double) override { ++told; }
  void on_iteration(int index, const IterationReport&) override {
    if (index == after_) control_.request_stop(Stop::interrupted);
  }
  int told = 0;

 private:
  Control& control_;
  const int after_;
};

TEST(AnOpenEnd, ThatIsInterruptedKeepsItsIterations) {
  SmallJob job = steps(FabricKind::memory, 0);
  job.spec.run.end = for_seconds(3600);
  const auto control = Control::meet(World{});
  Stopper stopper(*control, 7);
  const Result result = job.run(*control, &stopper);
  EXPECT_NE(result.interrupted, "");
  ASSERT_TRUE(result.open_end);
  EXPECT_EQ(result.open_end->by, EndedBy::nothing);
  EXPECT_GE(result.iterations.size(), 8u);
  EXPECT_LT(result.iterations.size(), 30u);
  EXPECT_GE(stopper.told, 6);
}

}  // namespace
}  // namespace ghostrank
