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
#include "collectives/compress/selection.h"

namespace ghostrank {
namespace {

std::uint64_t size(std::uint64_t elements, const CompressionOptions& options) {
  return 8 * kept_by_ratio(elements, options);
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
  const std::uint64_t k = kept_by_ratio(tensor.size(), options);
  std::vector<std::uint32_t> indices = largest_first(tensor, k);
  std::sort(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(k));
  for (std::uint64_t i = 0; i < k; ++i) std::memcpy(payload + 4 * i, &tensor[indices[i]], 4);
  std::memcpy(payload + 4 * k, indices.data(), 4 * k);
}

void decompress(std::span<const std::byte> payload, const CompressionOptions&,
                std::span<float> tensor) {
  scatter_selected(payload, tensor);
}

double error(std::span<const float> tensor, const CompressionOptions& options) {
  const std::uint64_t k = kept_by_ratio(tensor.size(), options);
  if (k >= tensor.size()) return 0;
  return std::abs(static_cast<double>(tensor[largest_first(tensor, k)[k]]));
}

}  // namespace

const Compressor kTopK{.name = "topk",
                       .cost = fitted(281),
                       .size = size,
                       .compress = compress,
                       .decompress = decompress,
                       .error = error,
                       .kept = kept_by_ratio,
                       .most_elements = kMostIndexed};

}  // namespace ghostrank
