#include "emulator/step_trial.h"

#include <cmath>
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
  trial.spec.events = nullptr;
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

}  // namespace

StepTrial::StepTrial(const LoadedJob& job, const Workload& workload)
    : job_(alone_in_virtual_time(job)),
      workload_(workload),
      step_(compressed_step(job.spec, workload)),
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
                  [&trial](const SentTensor& call, double ratio) {
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

}  // namespace ghostrank
