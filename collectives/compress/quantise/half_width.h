// Shared by the methods that round every element to a type of half its width: the sum of payloads
// is an all-reduce of that type.
//
// Threading: pure functions.
#pragma once

#include <algorithm>
#include <cmath>

#include "collectives/compress/methods.h"

namespace ghostrank {

// `Narrow` has from(float) and value(), as Half and Bf16 do.
template <class Narrow>
struct HalfWidth {
  static std::uint64_t size(std::uint64_t elements, const CompressionOptions&) { return elements; }

  static void compress(std::span<const float> tensor, const CompressionOptions&,
                       std::byte* payload) {
    auto* narrow = reinterpret_cast<Narrow*>(payload);
    for (std::size_t i = 0; i < tensor.size(); ++i) narrow[i] = Narrow::from(tensor[i]);
  }

  static void decompress(std::span<const std::byte> payload, const CompressionOptions&,
                         std::span<float> tensor) {
    const auto* narrow = reinterpret_cast<const Narrow*>(payload.data());
    for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = narrow[i].value();
  }
};

// The largest magnitude of a tensor.
inline double largest_of(std::span<const float> tensor) {
  double largest = 0;
  for (const float x : tensor) largest = std::max(largest, std::abs(static_cast<double>(x)));
  return largest;
}

// A cast reads 4 bytes and writes 2, or the reverse.
inline constexpr CompressionCost kHalfWidthCost = {
    6 / 900.0, 6 / 900.0, kLaunchUs, kLaunchUs,
    "6 bytes an element through a V100's memory, 900 GB/s, and a kernel's launch: a lower bound"};

}  // namespace ghostrank
