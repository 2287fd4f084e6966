#include "switch/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ghostrank::switchml {
namespace {

// Every number is rounded by up to a half. Up to 256 workers, the 2^-24 by which a number is below
// 2^exponent makes up for that; for more, the range is smaller.
double scale_of(int exponent, int workers) {
  const double most = std::numeric_limits<std::int32_t>::max() - (workers > 256 ? workers : 0);
  return std::ldexp(most / workers, -exponent);
}

}  // namespace

std::int8_t exponent_of(std::span<const float> numbers) {
  std::uint32_t most = 0;  // bits without the sign, which sort by magnitude
  for (const float x : numbers) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x) & 0x7fff'ffffu;
    most = std::max(most, bits > 0x7f80'0000u ? 0 : bits);
  }
  const int exponent = static_cast<int>(most >> 23) - 126;
  return static_cast<std::int8_t>(std::clamp(exponent, kLeastExponent, kMostExponent));
}

void quantise(std::span<const float> numbers, int exponent, int workers, std::int32_t* whole) {
  const double scale = scale_of(exponent, workers);
  const double most = std::ldexp(1.0 - 0x1p-24, exponent);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double x = std::isnan(numbers[i]) ? 0 : static_cast<double>(numbers[i]);
    whole[i] = static_cast<std::int32_t>(std::nearbyint(std::clamp(x, -most, most) * scale));
  }
}

void restore(std::span<const std::int32_t> sums, int exponent, int workers, float* numbers) {
  const double step = 1 / scale_of(exponent, workers);
  for (std::size_t i = 0; i < sums.size(); ++i) numbers[i] = static_cast<float>(sums[i] * step);
}

double error_bound(int exponent, int workers) {
  return workers * 0.5 / scale_of(exponent, workers);
}

}  // namespace ghostrank::switchml
