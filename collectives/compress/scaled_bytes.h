// Shared by the methods whose payload is 0 or more float scales, then one byte per element.
//
// Threading: pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

#include "collectives/compressor.h"

namespace ghostrank {

// `scales` floats and a byte an element.
template <int scales>
std::uint64_t scaled_bytes(std::uint64_t elements, const CompressionOptions&) {
  return 4 * scales + elements;
}

inline void put_float(std::byte* payload, int index, float value) {
  std::memcpy(payload + 4 * index, &value, 4);
}
inline float get_float(std::span<const std::byte> payload, int index) {
  float value;
  std::memcpy(&value, payload.data() + 4 * index, 4);
  return value;
}

// Returns NaN if an element is NaN, so that a tensor that is scaled by it becomes NaN as a whole.
inline float largest_magnitude(std::span<const float> tensor) {
  float largest = 0;
  bool numbers = true;
  for (const float x : tensor) {
    largest = std::abs(x) > largest ? std::abs(x) : largest;
    numbers &= !std::isnan(x);
  }
  return numbers ? largest : std::numeric_limits<float>::quiet_NaN();
}

inline double mean_magnitude(std::span<const float> tensor) {
  double sum = 0;
  for (const float x : tensor) sum += static_cast<double>(std::abs(x));
  return tensor.empty() ? 0 : sum / static_cast<double>(tensor.size());
}

}  // namespace ghostrank
