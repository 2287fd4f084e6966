// See statistics.h.
#include "tools/text/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "profiles/median.h"

namespace ghostrank {
namespace {

constexpr std::size_t kSamplesForP99 = 100;

}  // namespace

double student_t95(int degrees_of_freedom) {
  static constexpr std::array<double, 30> kT{
      12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
      2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
      2.0796,  2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423};
  if (degrees_of_freedom <= 30) {
    return kT[static_cast<std::size_t>(std::max(degrees_of_freedom, 1)) - 1];
  }
  // Expansion of the quantile around the normal one (Abramowitz and Stegun 26.7.5, two terms): off
  // by less than 1e-4 here.
  const double z = 1.959964;
  const double n = degrees_of_freedom;
  return z + (z * z * z + z) / (4 * n) +
         (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

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
    const double half = student_t95(static_cast<int>(sorted.size()) - 1) * deviation / std::sqrt(n);
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
