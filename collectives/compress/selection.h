// Shared by the sparsifying methods: payloads of values, then indices, 4 bytes each, in the order
// of the tensor; how many elements a ratio means; magnitudes above a threshold.
//
// Units: elements; payloads in bytes. Threading: pure functions.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/compressor.h"

namespace ghostrank {

// k = max(1, floor(ratio n)), at most n.
std::uint64_t kept_by_ratio(std::uint64_t elements, const CompressionOptions& options);

// Whether |x| >= threshold; NaNs are always sent, so that they are seen.
inline bool is_selected(float x, float threshold) { return !(std::abs(x) < threshold); }

std::uint64_t count_selected(std::span<const float> tensor, float threshold);
// Writes the selected elements, 8 bytes each.
void write_selected(std::span<const float> tensor, float threshold, std::byte* payload);
// Writes the payload's values at their indices, and 0 elsewhere. Ignores indices beyond the end.
void scatter_selected(std::span<const std::byte> payload, std::span<float> tensor);
// The largest magnitude that is not selected.
double largest_left(std::span<const float> tensor, float threshold);

// A method that sends the elements that its threshold selects. `Threshold` returns a magnitude
// above 0, or infinity to send nothing but infinities and NaNs.
template <float (*Threshold)(std::span<const float>, const CompressionOptions&)>
constexpr Compressor selects_by(std::string_view name, const CompressionCost& cost, bool by_ratio) {
  Compressor method;
  method.name = name;
  method.cost = cost;
  method.size = [](std::uint64_t elements, const CompressionOptions&) { return 8 * elements; };
  method.measure = [](std::span<const float> tensor, const CompressionOptions& options) {
    return 8 * count_selected(tensor, Threshold(tensor, options));
  };
  method.compress = [](std::span<const float> tensor, const CompressionOptions& options,
                       std::byte* payload) {
    write_selected(tensor, Threshold(tensor, options), payload);
  };
  method.decompress = [](std::span<const std::byte> payload, const CompressionOptions&,
                         std::span<float> tensor) { scatter_selected(payload, tensor); };
  method.error = [](std::span<const float> tensor, const CompressionOptions& options) {
    return largest_left(tensor, Threshold(tensor, options));
  };
  method.carried = [](std::uint64_t payload) { return payload / 8; };
  method.most_elements = kMostIndexed;
  if (by_ratio) method.kept = kept_by_ratio;
  return method;
}

}  // namespace ghostrank
