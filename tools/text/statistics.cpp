// See statistics.h.
#include "tools/text/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "emulator/result/mean_interval.h"
#include "profiles/median.h"

namespace ghostrank {
namespace {

constexpr std::size_t kSamplesForP99 = 100;

}  // namespace

Summary summarize(std::span<const double> samples) {
  Summary summary;
  if (samples.empty()) return summary;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  summary.median = median(sorted);
  summary.mean = mean;
  if (sorted.size() >= 2) {
    double squares = 0;
    for (const double x : sorted) squares += (x - mean) * (x - mean);
    const double deviation = std::sqrt(squares / (n - 1));
    if (mean != 0) summary.cv = deviation / mean;
    const double half = student_t95(std::ssize(sorted) - 1) * deviation / std::sqrt(n);
    // Few samples of which one is large: what is never below 0 has no mean below 0.
    const double least = sorted.front() >= 0 ? std::max(0.0, mean - half) : mean - half;
    summary.ci95 = {least, mean + half};
  }
  if (sorted.size() >= kSamplesForP99) {
    summary.p99 = sorted[static_cast<std::size_t>(std::ceil(0.99 * n)) - 1];
  }
  return summary;
}

Summary summarize_exact(std::span<const double> samples) {
  Summary summary = summarize(samples);
  summary.ci95.reset();
  return summary;
}

}  // namespace ghostrank
