// AdaComp's relative AdaQ (Dryden et al., 2016): of the positive and of the negative elements each,
// the largest (as DGC finds them) are sent as their indices and one mean.
//
// Payload, 4 bytes each: mean of the positive ones, of the negative ones, number of positive ones,
// their indices, the negative ones' indices. Error of an element: at most the largest magnitude.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"
#include "collectives/compress/selection.h"
#include "collectives/compress/sparsify/sampled_threshold.h"

namespace ghostrank {
namespace {

// The indices of one sign that are sent, and their mean.
struct Side {
  std::vector<std::uint32_t> indices;
  float mean = 0;
};

Side side_of(std::span<const float> tensor, float sign, const CompressionOptions& options) {
  std::vector<float> magnitudes;
  for (const float x : tensor)
    if (x * sign > 0) magnitudes.push_back(x * sign);
  if (magnitudes.empty()) return {};
  const float threshold = sampled_threshold(magnitudes, options.ratio, options.seed);
  Side side;
  double sum = 0;
  for (std::uint32_t i = 0; i < tensor.size(); ++i) {
    const float magnitude = tensor[i] * sign;
    if (!(magnitude >= threshold && magnitude > 0)) continue;
    side.indices.push_back(i);
    sum += static_cast<double>(tensor[i]);
  }
  if (!side.indices.empty())
    side.mean = static_cast<float>(sum / static_cast<double>(side.indices.size()));
  return side;
}

std::uint64_t size(std::uint64_t elements, const CompressionOptions&) { return 12 + 4 * elements; }

std::uint64_t measure(std::span<const float> tensor, const CompressionOptions& options) {
  return 12 + 4 * (side_of(tensor, 1, options).indices.size() +
                   side_of(tensor, -1, options).indices.size());
}

void compress(std::span<const float> tensor, const CompressionOptions& options,
              std::byte* payload) {
  const Side positive = side_of(tensor, 1, options), negative = side_of(tensor, -1, options);
  const auto positives = static_cast<std::uint32_t>(positive.indices.size());
  put_float(payload, 0, positive.mean);
  put_float(payload, 1, negative.mean);
  std::memcpy(payload + 8, &positives, 4);
  std::byte* at = payload + 12;
  for (const Side* side : {&positive, &negative}) {
    const std::size_t bytes = 4 * side->indices.size();
    if (bytes > 0) std::memcpy(at, side->indices.data(), bytes);
    at += bytes;
  }
}

void decompress(std::span<const std::byte> payload, const CompressionOptions&,
                std::span<float> tensor) {
  std::fill(tensor.begin(), tensor.end(), 0.0f);
  if (payload.size() < 12) return;
  std::uint32_t positives;
  std::memcpy(&positives, payload.data() + 8, 4);
  for (std::size_t i = 0; 16 + 4 * i <= payload.size(); ++i) {
    std::uint32_t index;
    std::memcpy(&index, payload.data() + 12 + 4 * i, 4);
    if (index < tensor.size()) tensor[index] = get_float(payload, i < positives ? 0 : 1);
  }
}

double error(std::span<const float> tensor, const CompressionOptions&) {
  return 1.00001 * static_cast<double>(largest_magnitude(tensor));
}

}  // namespace

const Compressor kAdaq{.name = "adaq",
                       .cost = fitted(1185, LaunchedKernels::many_small),
                       .size = size,
                       .compress = compress,
                       .decompress = decompress,
                       .error = error,
                       .kept = kept_by_ratio,
                       .measure = measure,
                       .carried = [](std::uint64_t payload) { return (payload - 12) / 4; },
                       .most_elements = kMostIndexed};

}  // namespace ghostrank
