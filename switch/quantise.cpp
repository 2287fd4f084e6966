#include "switch/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "switch/assert.h"
#include "switch/kernel.h"

namespace ghostrank::switchml {
namespace {

// 2^e, for -1023 < e < 1024. Packets of floats ask for it three times each.
double power_of_two(int e) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + e) << 52);
}

// Every number is rounded by up to a half. Up to 256 workers, the 2^-24 by which a number is below
// 2^exponent makes up for that; for more, the range is smaller.
double scale_of(int exponent, int workers) {
  const double most = std::numeric_limits<std::int32_t>::max() - (workers > 256 ? workers : 0);
  return most / workers * power_of_two(-exponent);
}

constexpr std::uint32_t kSign = 0x8000'0000u, kInfinity = 0x7f80'0000u;

// The bits of a number without its sign, which sort by magnitude; 0 of what is no number. Without a
// branch, so that loops are vectorised.
inline std::uint32_t magnitude(std::uint32_t number) {
  const std::uint32_t bits = number & ~kSign;
  return bits & (0u - static_cast<std::uint32_t>(bits <= kInfinity));
}

// Float i, which need not be aligned.
inline std::uint32_t bits_of(const std::byte* floats, std::size_t i) {
  std::uint32_t bits;
  std::memcpy(&bits, floats + i * sizeof bits, sizeof bits);
  return bits;
}

}  // namespace

GHOSTRANK_KERNEL std::int8_t exponent_of(std::span<const std::byte> floats) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < floats.size() / sizeof(float); ++i)
    most = std::max(most, magnitude(bits_of(floats.data(), i)));
  const int exponent = static_cast<int>(most >> 23) - 126;
  return static_cast<std::int8_t>(std::clamp(exponent, kLeastExponent, kMostExponent));
}

GHOSTRANK_KERNEL void quantise(std::span<const std::byte> floats, int exponent, int workers,
                               std::int32_t* whole) {
  const double scale = scale_of(exponent, workers);
  // The largest float below 2^exponent: larger ones count as that.
  const auto below = static_cast<float>((1.0 - 0x1p-24) * power_of_two(exponent));
  const std::uint32_t most = magnitude(std::bit_cast<std::uint32_t>(below));
  for (std::size_t i = 0; i < floats.size() / sizeof(float); ++i) {
    const std::uint32_t bits = bits_of(floats.data(), i);
    const double x = std::bit_cast<float>(std::min(magnitude(bits), most) | (bits & kSign));
    whole[i] = static_cast<std::int32_t>(std::nearbyint(x * scale));
  }
}

GHOSTRANK_KERNEL void restore(std::span<const std::byte> sums, int exponent, int workers,
                              std::span<float> numbers) {
  GHOSTRANK_ASSERT(sums.size() >= numbers.size() * sizeof(std::int32_t));
  const double step = 1 / scale_of(exponent, workers);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::int32_t sum;
    std::memcpy(&sum, sums.data() + i * sizeof sum, sizeof sum);
    numbers[i] = static_cast<float>(sum * step);
  }
}

double error_bound(int exponent, int workers) {
  return workers * 0.5 / scale_of(exponent, workers);
}

}  // namespace ghostrank::switchml
