// A job whose ratios follow the network (compression.budget_ms): its steps are played one after the
// other in virtual time, on the network as it is when each begins, and a controller
// (ratio_controller.h) chooses the ratios of the next one. The run then plays the steps that were
// chosen as one whole.
//
// Rates count from the beginning of the warm-up and again from that of the measured iterations
// (nic_rates.h), so the second begins where the network does, with what the controller has learned.
//
// Units: seconds of emulated time. Threading: one owner; the trials have a control of their own.
#pragma once

#include <functional>
#include <memory>
#include <string>
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
  // `ratios`: by call. Throws Error as playing does.
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

// Share of the gradients that a step with these ratios sends.
double share_of(const CompressedStep& step, const std::vector<double>& ratios);

struct Adapted {
  Workload workload;  // a program for each iteration, warm-up included
  std::string note;   // what was chosen, for reports
};
// Asks `stop` before every step; returns the workload as it is when that says so.
Adapted adapt(const LoadedJob& job, const Workload& workload, const std::function<bool()>& stop);

}  // namespace ghostrank
