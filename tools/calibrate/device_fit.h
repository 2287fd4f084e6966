// A device whose compute times are fitted to the step times of runs on it, and how well that
// predicts steps which were held out.
//
// Fits the fewest numbers that predict well (step_fit.h): the device's efficiency where models are
// computed by FLOPs; the shares of its peak and of its memory's bandwidth that kernels reach; the
// host's time to launch a kernel. Steps are estimated first (emulator/estimate). Then all runs are
// played in virtual time with the fitted numbers, and the fit is repeated with each estimate scaled
// by played over estimated time. Jobs that cannot be estimated are played throughout. The rest of a
// job (its cluster, its plan, its collectives' times) is taken as given: its errors go into the
// fitted numbers, and into the held-out error.
//
// Units: seconds, microseconds (host_us). Errors: Error(usage) for too few different jobs, and for
// jobs whose compute does not depend on the device. Threading: one thread.
#pragma once

#include <string>
#include <vector>

#include "profiles/job/job.h"
#include "tools/calibrate/measured_runs.h"
#include "tools/calibrate/step_fit.h"

namespace ghostrank {

inline constexpr std::size_t kFewestRuns = 5;   // different jobs; fewer are refused
inline constexpr std::size_t kEnoughRuns = 15;  // with fewer, a note says so

struct DeviceFit {
  DeviceProfile device;            // with the fitted numbers, and the held-out error
  bool by_flops = false;           // the runs' models are computed by FLOPs alone
  std::vector<FitNumber> numbers;  // the fitted ones
  StepFit fit;
  std::vector<std::string> notes;  // what to know before it is trusted
};

// `play`: false: no run is played to scale its estimate, which saves minutes for large clusters.
DeviceFit fit_device(std::vector<MeasuredRun>& runs, bool play);

// The profile as a file of profiles/devices: complete, with where its numbers come from.
std::string device_yaml(const DeviceFit& fit, const std::string& from, std::size_t runs);

}  // namespace ghostrank
