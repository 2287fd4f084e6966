// The slicing and the channels with which a variant is fastest: `compare --tune`, so that no scheme
// is compared with a rival that is played badly.
//
// Every pair of a slice and a number of channels is a candidate. Keys that the command line sets,
// for the variant or for all, stay as they are. Candidates that the job refuses are left out, and
// the job's own values stay where no candidate is faster by a thousandth.
//
// Units: seconds of a step. Threading: main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profiles/load/load.h"

namespace ghostrank {

struct Tuning {
  int played = 0;                     // candidates; 0: none is left open, or all are refused
  std::vector<std::string> settings;  // "key=value"; empty: the job's own values are best
  double own = 0, best = 0;           // step times with the job's values, and with `settings`
};

// Step time of the job with more settings, which it may refuse by Error(usage).
using StepWith = std::function<double(const std::vector<std::string>& more)>;

// `job` is the variant as it was loaded. Errors are those of `step_with`; a candidate's
// Error(usage) leaves it out.
Tuning tune_variant(const LoadedJob& job, const StepWith& step_with);

// What the report says of it, without a line feed.
std::string words_of(const Tuning& tuning);

// The median step of the job in virtual time, without jitter and packet faults. Throws Error, also
// where the job cannot play in virtual time.
double virtual_step(const std::string& job, std::vector<std::string> overrides);

}  // namespace ghostrank
