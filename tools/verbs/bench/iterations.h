// Statistics of the calls of one row, as nccl-tests' -I reports them.
//
// Units: seconds. Threading: pure functions.
#pragma once

#include <span>

namespace ghostrank {

// Percentiles are nearest ranks, but p50 of an even number of calls is the upper of the middle two;
// the standard deviation is the population's. Without calls all are 0.
struct IterationStats {
  double min = 0, max = 0, mean = 0, p50 = 0, p95 = 0, p99 = 0, stdev = 0;
  double cv_percent() const { return mean > 0 ? stdev / mean * 100 : 0; }
};

IterationStats iteration_stats(std::span<const double> seconds);

// How far each statistic may be off because of this machine: as error_of()
// (emulator/result/figures.h) says of the same calls with and without `late`, the seconds that the
// machine may have added to each. The standard deviation's is a share of the mean, since that of
// steady calls is 0. `late` may be empty: nothing is late in virtual time.
IterationStats iteration_errors(std::span<const double> seconds, std::span<const double> late);

}  // namespace ghostrank
