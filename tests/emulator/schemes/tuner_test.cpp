// The tuner: its Gaussian process against closed forms, the order of its trials, and jobs that it
// makes faster.
#include "emulator/tuner/tuner.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "emulator/engine.h"
#include "profiles/planners/plan.h"
#include "tests/layers_job.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

constexpr GaussianKernel kMatern{GaussianKernel::Kind::matern52, 1e-6};

TEST(GaussianProcess, KnowsWhatItWasTold) {
  const GaussianProcess process(kMatern, {{1}, {4}, {9}}, {3, 5, 1});
  for (const auto& [x, y] : {std::pair{1.0, 3.0}, {4.0, 5.0}, {9.0, 1.0}}) {
    EXPECT_NEAR(process.at({x}).mean, y, 1e-4);
    EXPECT_LT(process.at({x}).deviation, 1e-2);
  }
  // Far away it knows the mean and the deviation of the values.
  EXPECT_NEAR(process.at({1e9}).mean, 3, 1e-9);
  EXPECT_NEAR(process.at({1e9}).deviation, std::sqrt(8.0 / 3), 1e-9);
}

// Of two points with values -1 and 1 the weights are those values over 1 + noise - k.
TEST(GaussianProcess, WeighsTwoPointsAsTheClosedFormDoes) {
  for (const auto kind :
       {GaussianKernel::Kind::matern52, GaussianKernel::Kind::squared_exponential}) {
    const GaussianKernel kernel{kind, 0.1};
    const GaussianProcess process(kernel, {{0, 0}, {3, 4}}, {-1, 1});
    const auto k = [&](double r) {
      r /= process.length();
      const double s = std::sqrt(5.0) * r;
      return kind == GaussianKernel::Kind::matern52 ? (1 + s + 5 * r * r / 3) * std::exp(-s)
                                                    : std::exp(-r * r / 2);
    };
    EXPECT_NEAR(process.at({0, 1}).mean, (k(std::hypot(3, 3)) - k(1)) / (1.1 - k(5)), 1e-12);
  }
}

TEST(ExpectedImprovement, IsItsClosedForm) {
  // No gain expected: the deviation over the square root of 2 pi.
  EXPECT_NEAR(expected_improvement({5, 2}, 4, 1), 2 / std::sqrt(2 * M_PI), 1e-15);
  EXPECT_EQ(expected_improvement({5, 0}, 4, 0.25), 0.75);
  EXPECT_EQ(expected_improvement({3, 0}, 4, 0), 0);
  EXPECT_NEAR(expected_improvement({100, 1}, 4, 1), 95, 1e-12);  // surely better
}

TEST(NextTrial, BeginsAtTheFixedPlaces) {
  const TuningRule& horovod = tuning_rule(Framework::horovod);
  std::vector<Trial> trials;
  for (const Point& start : {Point{4, 5}, Point{32, 50}, Point{16, 25}, Point{8, 10}}) {
    EXPECT_EQ(next_trial(horovod, trials, {128, 1}), start);
    trials.push_back({start, 1 + start[1] / 100});
  }
  const Point fifth = next_trial(horovod, trials, {128, 1});
  EXPECT_GE(fifth[0], 0);
  EXPECT_LE(fifth[0], 64);
  EXPECT_GE(fifth[1], 1);
  EXPECT_LE(fifth[1], 100);
  EXPECT_EQ(next_trial(tuning_rule(Framework::dear), {}, {25}), Point{25});
}

// A step is shortest at 40; ten trials come near, in a space of 1 to 256.
TEST(NextTrial, ComesNearTheBestOfASmoothFunction) {
  const TuningRule& dear = tuning_rule(Framework::dear);
  std::vector<Trial> trials;
  double best = 1e9;
  for (int i = 0; i < dear.trials; ++i) {
    const Point at = next_trial(dear, trials, {25});
    for (const Trial& trial : trials) EXPECT_NE(trial.at, at);
    trials.push_back({at, 10 + std::pow((at[0] - 40) / 50, 2)});
    best = std::min(best, trials.back().seconds);
  }
  EXPECT_LT(best, 10.02);  // within 8 of it; the start is at 10.09
}

// Twenty layers of 0.4 MB: one group hides nothing, small ones most.
TEST(Tune, FindsASmallerThresholdWhereOneGroupHidesNothing) {
  const test::LayersJob::Layer layer{"[100000]", 240, 240};
  const LoadedJob job =
      test::load_text(test::text_of({.layers = std::vector(20, layer),
                                     .nodes = 4,
                                     .cluster = "nic: {rate: 10Gbps, latency_us: 0}",
                                     .parallel = "framework: dear, tune: bo"}) +
                      "fabric: {kind: virtual}\nrun: {warmup: 1, iterations: 5}\n");
  const auto control = Control::meet(World{});
  const Tuned tuned = tune(job, *control);
  ASSERT_EQ(tuned.trials.size(), 10u);
  EXPECT_EQ(tuned.trials[0].at, Point{25});
  EXPECT_LT(tuned.parallel.threshold_mb, 8);
  EXPECT_NE(tuned.note.find("tuned in 10 trials: parallel.threshold_mb "), std::string::npos);
  // The job that it returns takes what the trial took, and less than before.
  const auto step = [&](const ParallelPlan& parallel) {
    LoadedJob played = job;
    played.spec.parallel = parallel;
    Observer nobody;
    return run_job(played, plan_workload(played.spec), *control, {}, nobody)
        .iterations.at(2)
        .seconds;
  };
  double fastest = 1e9;
  for (const Trial& trial : tuned.trials) fastest = std::min(fastest, trial.seconds);
  EXPECT_NEAR(step(tuned.parallel), fastest, 1e-9);
  EXPECT_LT(fastest, 0.9 * step(job.spec.parallel));
}

// Horovod's samples have buffers of up to 64 MiB. Eight tensors of 16 MB that share one of 128 MiB
// take one call, and every call takes 30 ms of latency.
TEST(Tune, KeepsTheJobsOwnSizesWhereNoTrialIsFaster) {
  const test::LayersJob::Layer layer{"[4000000]", 10, 20};
  const LoadedJob job =
      test::load_text(test::text_of({.layers = std::vector(8, layer),
                                     .nodes = 4,
                                     .cluster = "nic: {rate: 100Gbps, latency_us: 5000}",
                                     .parallel = "framework: horovod, tune: bo"}) +
                      "fabric: {kind: virtual}\nrun: {warmup: 1, iterations: 3}\n");
  const auto control = Control::meet(World{});
  const Tuned tuned = tune(job, *control);
  EXPECT_EQ(tuned.trials.size(), 20u);
  EXPECT_EQ(tuned.parallel.fusion_mb, 128);
  EXPECT_EQ(tuned.parallel.cycle_ms, 1);
  EXPECT_NE(tuned.note.find(", 0 % more"), std::string::npos) << tuned.note;
}

TEST(Tune, IsRefusedWhereItMeansNothing) {
  const auto error = [](const char* parallel) {
    return test::load_error(std::string("model: resnet50\ndevice: rtx2080ti\nparallel: {") +
                            parallel + "}\n");
  };
  EXPECT_NE(
      error("framework: wfbp, tune: bo").find("parallel.tune means nothing to framework wfbp"),
      std::string::npos);
}

TEST(Tune, HasNoEffectWhereNothingReadsTheSize) {
  const auto job = [](const std::string& parallel) {
    return test::load_text("model: resnet50\ndevice: rtx2080ti\nparallel: {tune: bo, " + parallel +
                           "}\n");
  };
  const JobSpec layers = job("framework: dear, fusion: layers").spec;
  EXPECT_FALSE(layers.parallel.tune);
  EXPECT_TRUE(std::any_of(layers.notes.begin(), layers.notes.end(), [](const std::string& note) {
    return note.starts_with("no effect") && note.find("parallel.tune") != std::string::npos;
  }));
  EXPECT_TRUE(job("framework: dear").spec.parallel.tune);
  EXPECT_TRUE(job("framework: horovod").spec.parallel.tune);
}

}  // namespace
}  // namespace ghostrank
