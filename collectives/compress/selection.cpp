#include "collectives/compress/selection.h"

#include <algorithm>
#include <cstring>

namespace ghostrank {

std::uint64_t kept_by_ratio(std::uint64_t elements, const CompressionOptions& options) {
  const auto share = static_cast<std::uint64_t>(static_cast<double>(elements) * options.ratio);
  return std::min(elements, std::max<std::uint64_t>(1, share));
}

std::uint64_t count_selected(std::span<const float> tensor, float threshold) {
  std::uint64_t count = 0;
  for (const float x : tensor) count += is_selected(x, threshold) ? 1 : 0;
  return count;
}

void write_selected(std::span<const float> tensor, float threshold, std::byte* payload) {
  std::byte* value = payload;
  std::byte* index = payload + 4 * count_selected(tensor, threshold);
  for (std::uint32_t i = 0; i < tensor.size(); ++i) {
    if (!is_selected(tensor[i], threshold)) continue;
    std::memcpy(value, &tensor[i], 4);
    std::memcpy(index, &i, 4);
    value += 4;
    index += 4;
  }
}

void scatter_selected(std::span<const std::byte> payload, std::span<float> tensor) {
  std::fill(tensor.begin(), tensor.end(), 0.0f);
  const std::size_t count = payload.size() / 8;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t index;
    std::memcpy(&index, payload.data() + 4 * (count + i), 4);
    if (index < tensor.size()) std::memcpy(&tensor[index], payload.data() + 4 * i, 4);
  }
}

double largest_left(std::span<const float> tensor, float threshold) {
  float largest = 0;
  for (const float x : tensor)
    if (!is_selected(x, threshold)) largest = std::max(largest, std::abs(x));
  return static_cast<double>(largest);
}

}  // namespace ghostrank
