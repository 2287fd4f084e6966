// See bench/iterations.h.
#include "tools/verbs/bench/iterations.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "emulator/result/figures.h"

namespace ghostrank {

IterationStats iteration_stats(std::span<const double> seconds) {
  if (seconds.empty()) return {};
  std::vector<double> sorted(seconds.begin(), seconds.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  const auto percentile = [&](std::size_t percent) { return sorted[(n * percent + 99) / 100 - 1]; };
  IterationStats stats;
  stats.min = sorted.front();
  stats.max = sorted.back();
  stats.p50 = sorted[n / 2];
  stats.p95 = percentile(95);
  stats.p99 = percentile(99);
  const auto calls = static_cast<double>(n);
  stats.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / calls;
  double squares = 0;
  for (const double s : sorted) squares += (s - stats.mean) * (s - stats.mean);
  stats.stdev = std::sqrt(squares / calls);
  return stats;
}

IterationStats iteration_errors(std::span<const double> seconds, std::span<const double> late) {
  if (seconds.empty() || late.empty()) return {};
  std::vector<double> in_time(seconds.begin(), seconds.end());
  for (std::size_t i = 0; i < in_time.size(); ++i) in_time[i] -= late[i];
  const IterationStats played = iteration_stats(seconds), clean = iteration_stats(in_time);
  IterationStats errors;
  for (double IterationStats::*figure :
       {&IterationStats::min, &IterationStats::max, &IterationStats::mean, &IterationStats::p50,
        &IterationStats::p95, &IterationStats::p99})
    errors.*figure = error_of(played.*figure, clean.*figure);
  errors.stdev =
      clean.mean <= 0 ? kErrorUnknown : std::abs(played.stdev - clean.stdev) / clean.mean;
  return errors;
}

}  // namespace ghostrank
