#include "switch/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "switch/assert.h"
#include "switch/kernel.h"

namespace ghostrank::switchml {
namespace {

// 2^e, for -127 < e < 128.
float power_of_two(int e) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(127 + e) << 23);
}

// scale = 2^scale_of(), whose inverse is a float, too. Up to 128 workers the largest number below
// 2^exponent is scaled to a whole one; of more it may be rounded up, so that the power of two has
// to exceed their number.
int scale_of(int exponent, int workers) {
  const auto n = static_cast<unsigned>(std::max(workers, 2));
  return 31 - std::bit_width(n > 128 ? n : n - 1) - exponent;
}

// The bits of a number without its sign sort by magnitude: those of NaN are above infinity's.
constexpr std::uint32_t kMagnitude = 0x7fff'ffffu, kInfinity = 0x7f80'0000u;

// Item i of `floats`, which need not be aligned. One by one, because GCC makes vectors of such
// loops.
template <typename Type>
inline Type item(const std::byte* floats, std::size_t i) {
  Type value;
  std::memcpy(&value, floats + i * sizeof value, sizeof value);
  return value;
}

}  // namespace

GHOSTRANK_KERNEL std::int8_t exponent_of(std::span<const std::byte> floats) {
  // Prefetch the next block: it lies behind this one, and the caller asks for it next.
  for (std::size_t line = 0; line < floats.size(); line += 64)
    __builtin_prefetch(floats.data() + floats.size() + line);
  const std::size_t count = floats.size() / sizeof(float);
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i)
    most = std::max(most, item<std::uint32_t>(floats.data(), i) & kMagnitude);
  if (most > kInfinity) {  // NaN counts as 0
    most = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (const std::uint32_t bits = item<std::uint32_t>(floats.data(), i) & kMagnitude;
          bits <= kInfinity)
        most = std::max(most, bits);
  }
  const int exponent = static_cast<int>(most >> 23) - 126;
  return static_cast<std::int8_t>(std::clamp(exponent, kLeastExponent, kMostExponent));
}

GHOSTRANK_KERNEL void quantise(std::span<const std::byte> floats, int exponent, int workers,
                               std::int32_t* whole) {
  const float scale = power_of_two(scale_of(exponent, workers));
  // The largest float below 2^exponent: larger ones count as that.
  const float below = power_of_two(exponent) * (1 - 0x1p-24F);
  for (std::size_t i = 0; i < floats.size() / sizeof(float); ++i) {
    float x = item<float>(floats.data(), i);
    x = x == x ? x : 0;  // NaN
    x = x < below ? x : below;
    x = x > -below ? x : -below;
    whole[i] = static_cast<std::int32_t>(std::nearbyint(x * scale));
  }
}

GHOSTRANK_KERNEL void restore(std::span<const std::byte> sums, int exponent, int workers,
                              std::span<float> numbers) {
  GHOSTRANK_ASSERT(sums.size() >= numbers.size() * sizeof(std::int32_t));
  const float step = power_of_two(-scale_of(exponent, workers));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(item<std::int32_t>(sums.data(), i)) * step;
}

double error_bound(int exponent, int workers) {
  return workers * 0.5 / power_of_two(scale_of(exponent, workers));
}

}  // namespace ghostrank::switchml
