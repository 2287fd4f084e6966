// The sub-verbs of `ghostrank calibrate`, a file each.
//
// Threading: main thread.
#pragma once

#include "tools/verbs.h"

namespace ghostrank {

inline constexpr int kRepetitions = 5;  // of a measurement on this machine; the median counts

int calibrate_host(const Argv& argv);
int calibrate_compression(const Argv& argv);
int calibrate_steps(const Argv& argv);
int calibrate_ratios(const Argv& argv);
int calibrate_device(const Argv& argv);

}  // namespace ghostrank
