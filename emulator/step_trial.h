// The steady step of a job whose ratios follow the network, on the network as it is when the step
// begins, and steps whose ratios the controller chooses: what `ghostrank adapt` compares with fixed
// ratios. A run plays AdaptiveRatios (adaptive_ratios.h).
//
// Units: seconds of emulated time. Threading: one owner; the steps have a control of their own.
#pragma once

#include <memory>
#include <vector>

#include "emulator/adapt/compressed_step.h"
#include "emulator/adapt/ratio_controller.h"
#include "profiles/load/load.h"

namespace ghostrank {

// The steady step of a job with compression.adapts, played in virtual time, without jitter, from
// any moment of cluster.nic.rates on.
class StepTrial {
 public:
  StepTrial(const LoadedJob& job, const Workload& workload);

  struct Played {
    double seconds = 0;
    double calls = 0;  // seconds of all exchanges
  };
  // `at`: when the step begins, in seconds. `ratios`: by call. Throws Error as a Session does.
  Played play(double at, const std::vector<double>& ratios);

  const CompressedStep& step() const { return step_; }
  const JobSpec& spec() const { return job_.spec; }

 private:
  LoadedJob job_;
  const Workload& workload_;
  CompressedStep step_;
  std::shared_ptr<const NicRates> rates_;  // as the job has them; null: constant
};

// Steps whose ratios the controller chooses.
class AdaptiveSteps {
 public:
  // `trial` must outlive it.
  explicit AdaptiveSteps(StepTrial& trial);

  struct Step {
    double at = 0, seconds = 0;
    std::vector<double> ratios;  // by call
  };
  Step next();
  void begin_again() { now_ = 0; }  // the next step begins at time 0

 private:
  StepTrial& trial_;
  RatioController controller_;
  double now_ = 0;
};

}  // namespace ghostrank
