// Sends the k = max(1, ratio n) elements of largest magnitude: k values of 4 bytes, then their k
// indices of 4 bytes. Of equal magnitudes the one with the lower index wins, so that every machine
// sends the same elements. Error of an element: the largest magnitude that is not sent.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "collectives/compress/methods.h"

namespace ghostrank {
namespace {

std::uint64_t kept(std::uint64_t elements, const CompressionOptions& options) {
  const auto share = static_cast<std::uint64_t>(static_cast<double>(elements) * options.ratio);
  return std::min(elements, std::max<std::uint64_t>(1, share));
}

std::uint64_t size(std::uint64_t elements, const CompressionOptions& options) {
  return 8 * kept(elements, options);
}

// Indices of the elements, ordered so that the first `sorted` are those of largest magnitude, in
// any order. Compares the bits of floats, which sort like their magnitudes; NaNs count as largest.
std::vector<std::uint32_t> largest_first(std::span<const float> tensor, std::uint64_t sorted) {
  std::vector<std::uint32_t> indices(tensor.size());
  std::iota(indices.begin(), indices.end(), 0u);
  const auto larger = [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t x = std::bit_cast<std::uint32_t>(tensor[a]) << 1,
                        y = std::bit_cast<std::uint32_t>(tensor[b]) << 1;
    return x != y ? x > y : a < b;
  };
  if (sorted < indices.size())
    std::nth_element(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(sorted),
                     indices.end(), larger);
  return indices;
}

void compress(std::span<const float> tensor, const CompressionOptions& options,
              std::byte* payload) {
  const std::uint64_t k = kept(tensor.size(), options);
  std::vector<std::uint32_t> indices = largest_first(tensor, k);
  std::sort(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(k));
  for (std::uint64_t i = 0; i < k; ++i) std::memcpy(payload + 4 * i, &tensor[indices[i]], 4);
  std::memcpy(payload + 4 * k, indices.data(), 4 * k);
}

void decompress(const std::byte* payload, const CompressionOptions& options,
                std::span<float> tensor) {
  const std::uint64_t k = kept(tensor.size(), options);
  std::fill(tensor.begin(), tensor.end(), 0.0f);
  for (std::uint64_t i = 0; i < k; ++i) {
    std::uint32_t index;
    std::memcpy(&index, payload + 4 * (k + i), 4);
    if (index < tensor.size()) std::memcpy(&tensor[index], payload + 4 * i, 4);
  }
}

double error(std::span<const float> tensor, const CompressionOptions& options) {
  const std::uint64_t k = kept(tensor.size(), options);
  if (k >= tensor.size()) return 0;
  return std::abs(static_cast<double>(tensor[largest_first(tensor, k)[k]]));
}

}  // namespace

// Source: GRACE, ResNet-50 at 10 Gb/s and ratio 0.01. 8 workers reach 1,492 images/s, and 2,426
// without compression; at 64 images per GPU the difference is 132 ms per step, for 25.6 million
// elements.
const Compressor kTopK{.name = "topk",
                       .cost = {5.2, 4 / 900.0, 5,
                                "fitted to GRACE's ResNet-50 on V100s at 10 Gb/s, 64 images a GPU "
                                "assumed; decompressing writes zeros at 900 GB/s, a lower bound"},
                       .size = size,
                       .compress = compress,
                       .decompress = decompress,
                       .error = error,
                       .kept = kept};

}  // namespace ghostrank
