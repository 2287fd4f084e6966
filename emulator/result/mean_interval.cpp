#include "emulator/result/mean_interval.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ghostrank {

double student_t95(std::int64_t degrees_of_freedom) {
  static constexpr std::array<double, 30> kT{
      12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
      2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
      2.0796,  2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423};
  if (degrees_of_freedom <= 30) {
    return kT[static_cast<std::size_t>(std::max<std::int64_t>(degrees_of_freedom, 1)) - 1];
  }
  // Expansion of the quantile around the normal one (Abramowitz and Stegun 26.7.5, two terms): off
  // by less than 1e-4 here.
  const double z = 1.959964;
  const auto n = static_cast<double>(degrees_of_freedom);
  return z + (z * z * z + z) / (4 * n) +
         (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

void RunningMean::add(double sample) {
  const double from_old = sample - mean_;
  mean_ += from_old / static_cast<double>(++count_);
  squares_ += from_old * (sample - mean_);
}

std::optional<double> RunningMean::half_width() const {
  if (count_ < 2 || mean_ == 0) return std::nullopt;
  const auto n = static_cast<double>(count_);
  const double deviation = std::sqrt(std::max(0.0, squares_) / (n - 1));
  return student_t95(count_ - 1) * deviation / std::sqrt(n) / std::abs(mean_);
}

}  // namespace ghostrank
