#include "emulator/adapt/adaptive_ratios.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "emulator/adapt/ratio_ladder.h"
#include "emulator/traffic/tensor_use.h"

namespace ghostrank {
namespace {

Workload with_ladder(const JobSpec& spec, const Workload& planned, const CompressedStep& step) {
  const RatioLadder ladder(*spec.compression->adapts);
  std::vector<std::vector<double>> programs{
      std::vector<double>(step.calls.size(), ladder.rungs().back())};
  for (const double ratio : ladder.rungs()) programs.emplace_back(step.calls.size(), ratio);
  return with_ratios(spec, planned, step, programs);
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * share);
  return text;
}

}  // namespace

AdaptiveRatios::AdaptiveRatios(const JobSpec& spec, const Workload& planned)
    : spec_(spec),
      planned_(planned),
      step_(compressed_step(spec, planned)),
      workload_(with_ladder(spec, planned, step_)) {}

void AdaptiveRatios::begin(double dilation) {
  if (dilation_ != dilation)
    controller_ = std::make_unique<RatioController>(
        step_, *spec_.compression->adapts,
        [this](const SentTensor& call, double ratio) { return payload_at(spec_, call, ratio); });
  dilation_ = dilation;
  chosen_.clear();
}

void AdaptiveRatios::choose() {
  chosen_.push_back(controller_->ratios());
  for (Role& role : workload_.roles)
    role.iterations[kProgram] =
        with_ratios(spec_, workload_, step_, role.iterations.back(), chosen_.back());
}

void AdaptiveRatios::describe(Result& result) const {
  if (chosen_.empty() || step_.calls.empty()) return;
  // Stopped while it was measured again: the last ratios are of other iterations.
  if (chosen_.size() < result.iterations.size()) return;
  result.compression = compression_use(spec_, with_ratios(spec_, planned_, step_, chosen_), 0);
  std::vector<double>& shares = result.compression->ratios;
  for (const std::vector<double>& ratios : chosen_)
    shares.push_back(share_of(spec_, step_, ratios));
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  result.notes.push_back("ratios chosen step by step: a step sends " + percent(*least) + " to " +
                         percent(*most) + " of the gradients, " +
                         percent(result.compression->ratio_mean) + " on average");
}

}  // namespace ghostrank
