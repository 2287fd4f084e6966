#include "tools/calibrate/device_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "emulator/estimate/step_estimate.h"
#include "profiles/capture/profile_text.h"
#include "profiles/device/compute.h"
#include "profiles/device/device.h"
#include "profiles/error.h"
#include "profiles/median.h"
#include "profiles/planners/plan.h"
#include "profiles/units.h"
#include "tools/quiet_play.h"
#include "tools/text/humane.h"
#include "tools/version.h"

namespace ghostrank {
namespace {

constexpr double kUnexplained = .25;  // a mean error above it is noted
// A run gets a note if its error exceeds both kAlone and kFartherThanMost times the median error.
constexpr double kAlone = .1, kFartherThanMost = 3;
constexpr double kHostStart = 20;  // microseconds, where the device has none

struct Number {
  const char* key;
  double& (*of)(DeviceProfile&);
  double least, most;
};
constexpr std::array kNumbers{
    Number{"efficiency", [](DeviceProfile& d) -> double& { return d.efficiency; }, .01, 1},
    Number{"kernels.matmul", [](DeviceProfile& d) -> double& { return d.kernels.matmul; }, .05, 1},
    Number{"kernels.memory", [](DeviceProfile& d) -> double& { return d.kernels.memory; }, .05, 1},
    Number{"kernels.host_us", [](DeviceProfile& d) -> double& { return d.kernels.host_us; }, 1,
           1000}};

double& number_of(DeviceProfile& device, const std::string& key) {
  const auto* const number =
      std::find_if(kNumbers.begin(), kNumbers.end(), [&](const Number& p) { return p.key == key; });
  return number->of(device);
}

// The steps of runs on a device with other numbers.
class Steps {
 public:
  explicit Steps(std::vector<MeasuredRun>& runs)
      : runs_(runs),
        estimators_(runs.size()),
        factors_(runs.size(), 1),
        cannot_(runs.size(), false) {
    for (MeasuredRun& run : runs_) {
      run.job.spec.device.memory_bytes = 0;  // it ran
      run.job.spec.device.measured = nullptr;
      run.job.spec.run.min_seconds = 0;
      run.job.spec.run.end = {};
    }
  }

  double step(std::size_t row, const std::vector<FitNumber>& numbers,
              const std::vector<double>& values) {
    JobSpec& spec = set(row, numbers, values);
    const Workload workload = plan_workload(spec);
    if (!cannot_[row]) try {
        return factors_[row] * seconds(estimators_[row].estimate(spec, workload).step);
      } catch (const Error&) {
        cannot_[row] = true;
      }
    return played(row, workload);
  }

  // Plays the runs with these numbers; from then on estimates are scaled by played over estimated
  // time.
  void play(const std::vector<FitNumber>& numbers, const std::vector<double>& values) {
    for (std::size_t row = 0; row < runs_.size(); ++row) {
      if (cannot_[row]) continue;
      factors_[row] = 1;
      const double estimated = step(row, numbers, values);
      RunSpec& run = runs_[row].job.spec.run;
      run.warmup = std::max(run.warmup, 1);  // the first step of some frameworks differs
      run.iterations = 2;
      factors_[row] = played(row, plan_workload(runs_[row].job.spec)) / estimated;
    }
  }

 private:
  JobSpec& set(std::size_t row, const std::vector<FitNumber>& numbers,
               const std::vector<double>& values) {
    JobSpec& spec = runs_[row].job.spec;
    for (std::size_t n = 0; n < numbers.size(); ++n)
      number_of(spec.device, numbers[n].name) =
          n < values.size() ? values[n] : numbers[n].otherwise;
    return spec;
  }
  // Without the first measured step, which all ranks begin at one moment.
  double played(std::size_t row, const Workload& workload) {
    std::vector<double> all;
    for (const IterationReport& iteration : play_quietly(runs_[row].job, workload).iterations)
      all.push_back(iteration.seconds);
    if (all.size() > 1) all.erase(all.begin());
    return median(std::move(all));
  }

  std::vector<MeasuredRun>& runs_;
  std::vector<StepEstimator> estimators_;
  std::vector<double> factors_;
  std::vector<bool> cannot_;  // be estimated
};

std::vector<FitNumber> numbers_of(DeviceProfile device) {
  std::vector<FitNumber> numbers;
  for (const Number& number : kNumbers) {
    const double own = number.of(device);
    numbers.push_back({number.key,
                       std::clamp(own > 0 ? own : kHostStart, number.least, number.most),
                       number.least, number.most, own});
  }
  return numbers;
}

std::string lines_of(const MeasuredRun& run) {
  std::string text = run.lines.size() > 1 ? "lines" : "line";
  for (std::size_t i = 0; i < run.lines.size(); ++i)
    text += (i > 0 ? ", " : " ") + std::to_string(run.lines[i]);
  return text;
}

std::vector<std::string> notes_of(const std::vector<MeasuredRun>& runs, const DeviceFit& found) {
  std::vector<std::string> notes;
  const StepFit& fit = found.fit;
  if (runs.size() < kEnoughRuns)
    notes.push_back(humane_count(static_cast<double>(runs.size()), "different job") +
                    " are few: some twenty, of several sizes and plans, say how far to trust it");
  for (std::size_t n = 0; n < fit.values.size(); ++n) {
    const FitNumber& number = found.numbers[n];
    const bool least = fit.values[n] < number.least * 1.001;
    if (!least && fit.values[n] <= number.most * .999) continue;
    const bool time = number.name == "kernels.host_us";  // the others are shares of a speed
    notes.push_back(number.name + " ends at its bound, " + significant(fit.values[n]) +
                    ": the runs are " + (least == time ? "faster" : "slower") +
                    " than this device can be; are the device, the plans and the seconds right?");
  }
  if (fit.mean_error > kUnexplained)
    notes.push_back("the device explains these runs badly, " + humane_percent(fit.mean_error) +
                    " off on average: do the jobs describe the cluster, the library and what was "
                    "really run?");
  std::vector<double> errors;
  for (std::size_t r = 0; r < runs.size(); ++r)
    errors.push_back(std::abs(fit.held_out[r] / runs[r].seconds - 1));
  const double most = std::max(kAlone, kFartherThanMost * median(errors));
  for (std::size_t r = 0; r < runs.size(); ++r)
    if (errors[r] > most)
      notes.push_back(lines_of(runs[r]) + " contradicts the others: measured " +
                      humane_seconds(runs[r].seconds) + ", they predict " +
                      humane_seconds(fit.held_out[r]));
  return notes;
}

void check_enough(const std::vector<MeasuredRun>& runs) {
  if (runs.size() >= kFewestRuns) return;
  throw Error("--from: " + humane_count(static_cast<double>(runs.size()), "different job") +
              (runs.size() == 1 ? " is" : " are") +
              " too few: numbers fitted to them could not be compared "
              "with others; give " +
              std::to_string(kFewestRuns) + " at least, better twenty");
}

// The type of the runs' products, or one of the same peak, for which a calibration holds alike;
// empty if they differ.
std::optional<OperandType> operand_type_of(const std::vector<MeasuredRun>& runs) {
  const auto of = [](const MeasuredRun& run) {
    return operand_type(run.job.spec.device, run.job.spec.precision);
  };
  const DeviceProfile& device = runs.front().job.spec.device;
  const OperandType type = of(runs.front());
  const bool same = std::all_of(runs.begin(), runs.end(), [&](const MeasuredRun& run) {
    return peak_tflops(device, of(run)) == peak_tflops(device, type);
  });
  return same ? std::optional(type) : std::nullopt;
}

}  // namespace

DeviceFit fit_device(std::vector<MeasuredRun>& runs, bool play) {
  check_enough(runs);
  DeviceFit found;
  found.device = runs.front().job.spec.device;
  const double memory_bytes = found.device.memory_bytes;
  const bool measured_kernels = found.device.measured != nullptr;
  found.device.measured = nullptr;
  Steps steps(runs);
  std::vector<double> measured;
  for (const MeasuredRun& run : runs) measured.push_back(run.seconds);

  const std::vector<FitNumber> all = numbers_of(found.device);
  const std::vector<bool> needed =
      matter(all, runs.size(),
             [&](std::size_t row, const auto& values) { return steps.step(row, all, values); });
  std::vector<FitNumber> numbers;
  for (std::size_t n = 0; n < all.size(); ++n)
    if (needed[n]) numbers.push_back(all[n]);
  if (numbers.empty())
    throw Error(
        "--from: no run's step depends on the device's compute: their layers are measured, or wait "
        "for communication alone; there is nothing to fit");
  found.by_flops = std::none_of(runs.begin(), runs.end(), [](const MeasuredRun& run) {
    return computes_by_kernels(run.job.spec);
  });
  // Numbers that no step depends on stay as they are.
  std::vector<FitNumber> others;
  for (std::size_t n = 0; n < all.size(); ++n)
    if (!needed[n]) others.push_back(all[n]);
  const auto predict = [&](const std::vector<FitNumber>& fitted) {
    return [&, fitted](std::size_t row, const std::vector<double>& values) {
      std::vector<FitNumber> every = fitted;
      every.insert(every.end(), others.begin(), others.end());
      return steps.step(row, every, values);
    };
  };
  found.fit = fit_fewest(numbers, measured, predict(numbers));
  const std::size_t fitted = found.fit.values.size();
  for (std::size_t n = fitted; n < numbers.size(); ++n) others.push_back(numbers[n]);
  numbers.resize(fitted);
  if (play) {
    std::vector<FitNumber> every = numbers;
    every.insert(every.end(), others.begin(), others.end());
    steps.play(every, found.fit.values);
    for (std::size_t n = 0; n < fitted; ++n) numbers[n].start = found.fit.values[n];
    found.fit = fit_steps(numbers, measured, predict(numbers));
  }
  found.numbers = numbers;
  found.notes = notes_of(runs, found);
  if (measured_kernels)
    found.notes.push_back("the measured kernels of " + found.device.name +
                          " are left out: the fitted numbers stand for them");
  for (std::size_t n = 0; n < fitted; ++n)
    number_of(found.device, numbers[n].name) = found.fit.values[n];
  found.device.memory_bytes = memory_bytes;
  found.device.calibration = Calibration::fitted;
  found.device.calibrated_type = operand_type_of(runs);
  found.device.step_time_error = std::min(1., std::ceil(found.fit.mean_error * 1000) / 1000);
  if (found.by_flops) found.device.multiprocessors = 0;
  return found;
}

std::string device_yaml(const DeviceFit& found, const std::string& from, std::size_t runs) {
  const DeviceProfile& d = found.device;
  std::string peaks, fitted;
  for (const auto& [type, word] : kOperandTypes)
    if (const double peak = peak_tflops(d, type); peak > 0)
      peaks += (peaks.empty() ? "" : ", ") + std::string(word) + ": " + significant(peak, 6);
  std::string type = "any";
  for (const auto& [one, word] : kOperandTypes)
    if (one == d.calibrated_type) type = word;
  for (const FitNumber& number : found.numbers)
    fitted += (fitted.empty() ? "" : ", ") + number.name;
  const std::string count = humane_count(static_cast<double>(runs), "run");
  std::string text = "# Fitted by `ghostrank calibrate --from` to the step times of " + count +
                     ": " + fitted + ".\n# Held out one by one, their steps are off by " +
                     humane_percent(found.fit.mean_error) + " on average, by " +
                     humane_percent(found.fit.worst) +
                     " at most.\n# All else is that of the device which their jobs name.\n";
  for (const std::string& note : found.notes) text += "# Note: " + note + "\n";
  return text + "schema: ghostrank/device/1\nname: " + yaml_quoted(d.name) + "\npeak_tflops: {" +
         peaks + "}\nefficiency: " + significant(d.efficiency) +
         "\nmemory_GBps: " + significant(d.memory_GBps, 6) +
         "\nmemory_bytes: " + std::to_string(static_cast<std::uint64_t>(d.memory_bytes)) +
         "\ncompute_capability: " + significant(d.compute_capability) +
         "\nmultiprocessors: " + std::to_string(d.multiprocessors) +
         "\nkernels: {matmul: " + significant(d.kernels.matmul) +
         ", memory: " + significant(d.kernels.memory) +
         ", launch_us: " + significant(d.kernels.launch_us) +
         ", host_us: " + significant(d.kernels.host_us) +
         "}\ncalibration: " + (found.by_flops ? "fitted_efficiency" : "fitted") +
         "\ncalibrated_type: " + type + "\nstep_time_error: " + significant(d.step_time_error) +
         "\nsource: " +
         yaml_quoted(count + " of " + from + ", fitted by ghostrank " GHOSTRANK_VERSION) + "\n";
}

}  // namespace ghostrank
