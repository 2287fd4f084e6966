// Statistics of the calls of one row, as nccl-tests' -I reports them.
//
// Units: seconds. Threading: pure functions.
#pragma once

#include <span>

namespace ghostrank {

// Percentiles are nearest ranks; the standard deviation is the population's. Without calls all are
// 0.
struct IterationStats {
  double min = 0, max = 0, mean = 0, p50 = 0, p95 = 0, p99 = 0, stdev = 0;
  double cv_percent() const { return mean > 0 ? stdev / mean * 100 : 0; }
};

IterationStats iteration_stats(std::span<const double> seconds);

}  // namespace ghostrank
