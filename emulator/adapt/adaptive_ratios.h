// Lets the ratios of a run follow its network (compression.budget_ms): after every iteration the
// controller learns how long the exchanges took, on any kind of fabric, and chooses the ratios of
// the next.
//
// The workload that is played has the steady step with every ratio of the ladder, so that routes,
// schedules and rows of the report are known before the start; only kProgram plays.
//
// Threading: as StepChooser.
#pragma once

#include <memory>
#include <vector>

#include "emulator/adapt/compressed_step.h"
#include "emulator/adapt/ratio_controller.h"
#include "emulator/adapt/step_chooser.h"
#include "emulator/result/result.h"

namespace ghostrank {

class AdaptiveRatios final : public StepChooser {
 public:
  static constexpr int kProgram = 0;  // until the first choose(): the largest ratios

  // `spec` and `planned` outlive it.
  AdaptiveRatios(const JobSpec& spec, const Workload& planned);

  const Workload& workload() const { return workload_; }
  // Adds the ratios of the iterations since begin() to their result.
  void describe(Result& result) const;

  // The controller keeps what it learned unless the dilation changed, because that changes how fast
  // a real network is in emulated time.
  void begin(double dilation) override;
  void choose() override;
  Func exchange() const override { return spec_.compression->method->exchange; }
  void measured(double seconds) override { controller_->measured(seconds); }

 private:
  const JobSpec& spec_;
  const Workload& planned_;
  const CompressedStep step_;
  Workload workload_;
  double dilation_ = 0;
  std::unique_ptr<RatioController> controller_;
  std::vector<std::vector<double>> chosen_;  // by iteration since begin(), then call
};

}  // namespace ghostrank
