#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace ghostrank {

// The middle sample; the mean of the two middle ones if their number is even; 0 without samples.
template <class Value = double>  // double: for a list in braces
Value median(std::vector<Value> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return std::midpoint(*std::max_element(values.begin(), middle), *middle);
}

// The sample below which this share of the samples lies, interpolated; 0 without samples.
template <class Value = double>
Value quantile(std::vector<Value> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return static_cast<Value>(static_cast<double>(values[low]) +
                            (at - static_cast<double>(low)) *
                                static_cast<double>(values[high] - values[low]));
}

// Returns the standard error of the median of normal samples, from their median distance to it.
// `independent`: how many of the samples count as independent.
template <class Value>
double median_error(const std::vector<Value>& values, std::size_t independent) {
  constexpr double kMadToSigma = 1.4826, kMeanToMedian = 1.2533;  // of a normal distribution
  if (independent == 0) return 0;
  const auto middle = static_cast<double>(median(values));
  std::vector<double> away;
  for (const Value& value : values) away.push_back(std::abs(static_cast<double>(value) - middle));
  return kMeanToMedian * kMadToSigma * median(std::move(away)) /
         std::sqrt(static_cast<double>(independent));
}

}  // namespace ghostrank
