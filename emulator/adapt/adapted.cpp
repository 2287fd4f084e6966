#include "emulator/adapt/adapted.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "emulator/engine.h"
#include "profiles/error.h"
#include "profiles/job/nic_rates.h"

namespace ghostrank {
namespace {

LoadedJob alone_in_virtual_time(const LoadedJob& job) {
  LoadedJob trial = job;
  trial.spec.fabric.kind = FabricKind::virtual_time;
  trial.spec.run.jitter = 0;
  trial.spec.run.shards = 1;
  trial.spec.hosts.clear();
  trial.spec.placement = {};
  return trial;
}

Result play_one_step(const LoadedJob& job, const Workload& workload) {
  const std::unique_ptr<Control> control = Control::meet(World{});
  Observer nobody;
  Result result = Session(job, workload, *control, {}, nobody).play(Phase{});
  control->close();
  if (!result.interrupted.empty()) throw Error(result.interrupted, ErrorKind::environment);
  return result;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * share);
  return text;
}

}  // namespace

StepTrial::StepTrial(const LoadedJob& job, const Workload& workload)
    : job_(alone_in_virtual_time(job)),
      workload_(workload),
      step_(compressed_step(workload)),
      rates_(job.spec.cluster.nic_rates) {}

StepTrial::Played StepTrial::play(double at, const std::vector<double>& ratios) {
  if (rates_)
    job_.spec.cluster.nic_rates =
        std::make_shared<const NicRates>(rates_->from(std::llround(at * 1e12)));
  const Result result =
      play_one_step(job_, with_ratios(job_.spec, workload_, step_, std::span(&ratios, 1)));
  Played played{result.iterations.back().seconds};
  const bool sums = job_.spec.compression->method->exchange == Func::all_reduce;
  for (const CollectiveReport& row : result.collectives)
    if (row.op == (sums ? "allreduce" : "all_gather") && row.algbw_GBps > 0)
      played.calls += row.bytes / (row.algbw_GBps * 1e9);
  return played;
}

AdaptiveSteps::AdaptiveSteps(StepTrial& trial)
    : trial_(trial),
      controller_(trial.step(), *trial.spec().compression->adapts,
                  [&trial](const CompressedCall& call, double ratio) {
                    return payload_at(trial.spec(), call, ratio);
                  }) {}

AdaptiveSteps::Step AdaptiveSteps::next() {
  Step step{now_, 0, controller_.ratios()};
  const StepTrial::Played played = trial_.play(now_, step.ratios);
  controller_.measured(played.calls);
  step.seconds = played.seconds;
  now_ += played.seconds;
  return step;
}

double share_of(const CompressedStep& step, const std::vector<double>& ratios) {
  double sent = 0, all = 0;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const auto elements = static_cast<double>(step.calls[i].elements);
    sent += elements * ratios[i];
    all += elements;
  }
  return sent / all;
}

Adapted adapt(const LoadedJob& job, const Workload& workload, const std::function<bool()>& stop) {
  const RunSpec& run = job.spec.run;
  StepTrial trial(job, workload);
  AdaptiveSteps steps(trial);
  std::vector<std::vector<double>> by_step;
  double least = 1, most = 0, sum = 0;  // of the measured iterations
  for (int i = 0; i < run.warmup + run.iterations; ++i) {
    if (stop()) return {workload, ""};
    if (i == run.warmup) steps.begin_again();
    by_step.push_back(steps.next().ratios);
    if (i < run.warmup) continue;
    const double share = share_of(trial.step(), by_step.back());
    least = std::min(least, share);
    most = std::max(most, share);
    sum += share;
  }
  return {with_ratios(job.spec, workload, trial.step(), by_step),
          "ratios chosen step by step: a step sends " + percent(least) + " to " + percent(most) +
              " of the gradients, " + percent(sum / run.iterations) + " on average"};
}

}  // namespace ghostrank
