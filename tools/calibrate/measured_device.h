// A device profile made of measured kernels.
//
// Its peaks, memory and capability are those of the published profile of the same GPU, if there is
// one, else what the GPU says of itself: its peaks are then the best rates that were measured,
// which the profile says.
//
// Threading: pure functions, apart from reading profiles.
#pragma once

#include <optional>
#include <string>

#include "profiles/job/job.h"
#include "tools/calibrate/cuda_library.h"
#include "tools/calibrate/kernel_measurement.h"

namespace ghostrank {

// The name of the shipped profile of the GPU that calls itself `name`; empty: there is none.
std::string published_profile(const std::string& name);

struct MeasuredDevice {
  std::string name;      // "h200-measured"
  std::string base;      // name or path of the profile whose peaks it has; empty: none
  DeviceProfile device;  // peaks, bandwidth and the rest; its shares from the measurement
  KernelTables tables;
  std::vector<std::string> how;  // lines of the comment at the top
  std::string source;
};

// Fits the formula's shares to the tables, and sets the error of its predictions.
void settle(MeasuredDevice& measured);

std::string measured_device_yaml(const MeasuredDevice& measured);

}  // namespace ghostrank
