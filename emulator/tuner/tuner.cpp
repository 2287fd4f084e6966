#include "emulator/tuner/tuner.h"

#include <algorithm>
#include <cstdio>

#include "emulator/engine.h"
#include "profiles/median.h"
#include "profiles/planners/plan.h"

namespace ghostrank {
namespace {

using Kind = GaussianKernel::Kind;

const TuningRule kDear{{{"parallel.threshold_mb", &ParallelPlan::threshold_mb, 1, 256, 2551}},
                       {},
                       true,
                       10,
                       1,
                       2,
                       {Kind::matern52, 1e-6},
                       0.1,
                       false};
const TuningRule kHorovod{{{"parallel.fusion_mb", &ParallelPlan::fusion_mb, 0, 64, 65},
                           {"parallel.cycle_ms", &ParallelPlan::cycle_ms, 1, 100, 100}},
                          {{4, 5}, {32, 50}, {16, 25}, {8, 10}},
                          false,
                          20,
                          5,
                          10,
                          {Kind::squared_exponential, 0.8},
                          0.01,
                          true};

// Steps that are played but do not count: the first of a trial inherit too little communication
// from the step before, the last waits until all of it has ended.
constexpr int kWarmup = 1, kBefore = 2, kAfter = 1;

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string text_of(const TuningRule& rule, const Point& at) {
  std::string out;
  for (std::size_t d = 0; d < at.size(); ++d)
    out += (d > 0 ? ", " : "") + std::string(rule.dimensions[d].key) + " " + text_of(at[d]);
  return out;
}

Point point_of(const TuningRule& rule, const ParallelPlan& parallel) {
  Point out;
  for (const auto& dimension : rule.dimensions) out.push_back(parallel.*dimension.value);
  return out;
}

void set(const TuningRule& rule, const Point& at, ParallelPlan& parallel) {
  for (std::size_t d = 0; d < at.size(); ++d) parallel.*rule.dimensions[d].value = at[d];
}

// Seconds of a step with these settings; negative when the run was stopped.
double play(const TuningRule& rule, const LoadedJob& job, const Point& at, Control& control) {
  LoadedJob trial = job;
  trial.spec.events = nullptr;
  set(rule, at, trial.spec.parallel);
  const Workload workload = plan_workload(trial.spec);
  Observer nobody;
  Session session(trial, workload, control, {}, nobody);
  Phase phase;
  phase.warmup = kWarmup;
  phase.iterations = kBefore + rule.scores * rule.steps + kAfter;
  const Result result = session.play(phase);
  if (!result.interrupted.empty()) return -1;
  std::vector<double> scores;
  for (int score = 0; score < rule.scores; ++score) {
    double seconds = 0;
    for (int step = 0; step < rule.steps; ++step)
      seconds +=
          result.iterations[static_cast<std::size_t>(kBefore + score * rule.steps + step)].seconds;
    scores.push_back(seconds / rule.steps);
  }
  return median(scores);
}

// Every point of the grid in turn, the first dimension fastest.
Point grid_point(const TuningRule& rule, std::size_t number) {
  Point out;
  for (const auto& dimension : rule.dimensions) {
    const auto points = static_cast<std::size_t>(dimension.points);
    const double share = static_cast<double>(number % points) / (dimension.points - 1);
    out.push_back(dimension.lowest + share * (dimension.highest - dimension.lowest));
    number /= points;
  }
  return out;
}

}  // namespace

const TuningRule& tuning_rule(Framework framework) {
  return framework == Framework::horovod ? kHorovod : kDear;
}

Point next_trial(const TuningRule& rule, const std::vector<Trial>& trials, const Point& from_job) {
  std::vector<Point> starts = rule.starts;
  if (rule.from_job) starts.insert(starts.begin(), from_job);
  if (trials.size() < starts.size()) return starts[trials.size()];
  std::vector<Point> points;
  std::vector<double> values;  // larger is better
  for (const Trial& trial : trials) {
    points.push_back(trial.at);
    values.push_back(-trial.seconds);
  }
  if (rule.relative) {
    const double slowest = -*std::min_element(values.begin(), values.end());
    for (double& value : values) value /= slowest;
  }
  const double best = *std::max_element(values.begin(), values.end());
  const GaussianProcess process(rule.kernel, points, values);
  std::size_t grid = 1;
  for (const auto& dimension : rule.dimensions) grid *= static_cast<std::size_t>(dimension.points);
  // If no point promises an improvement, take the one with the largest deviation.
  std::pair<double, double> most{-1, -1};
  Point next;
  for (std::size_t i = 0; i < grid; ++i) {
    Point at = grid_point(rule, i);
    const GaussianProcess::Guess guess = process.at(at);
    const std::pair score{expected_improvement(guess, best, rule.margin), guess.deviation};
    if (score <= most) continue;
    most = score;
    next = std::move(at);
  }
  return next;
}

Tuned tune(const LoadedJob& job, Control& control) {
  const TuningRule& rule = tuning_rule(job.spec.parallel.framework);
  const Point start = point_of(rule, job.spec.parallel);
  const double before = play(rule, job, start, control);
  Tuned out{job.spec.parallel, {}, ""};
  while (control.stop() == Stop::none && static_cast<int>(out.trials.size()) < rule.trials) {
    const Point at = next_trial(rule, out.trials, start);
    const double seconds = at == start ? before : play(rule, job, at, control);
    if (seconds < 0) break;
    out.trials.push_back({at, seconds});
  }
  if (out.trials.empty()) return out;
  Trial best{start, before};
  for (const Trial& trial : out.trials)
    if (trial.seconds < best.seconds) best = trial;
  set(rule, best.at, out.parallel);
  out.note = "tuned in " + std::to_string(out.trials.size()) +
             " trials: " + text_of(rule, best.at) + ", a step of " + text_of(best.seconds) +
             " s; with " + text_of(rule, start) + " it takes " + text_of(before) + " s, " +
             text_of(100 * (before / best.seconds - 1)) + " % more";
  return out;
}

}  // namespace ghostrank
