// Sends k = max(1, ratio n) elements that are drawn by a seed that all ranks share: values alone,
// 4 k bytes. All ranks send the same indices, so payloads add up and are all-reduced.
//
// Indices are drawn without replacement, in the order of the tensor (Knuth, TAOCP 3.4.2, algorithm
// S). Error of an element: the largest magnitude that is not drawn.
#include <algorithm>
#include <cmath>

#include "collectives/compress/draws.h"
#include "collectives/compress/methods.h"
#include "collectives/compress/selection.h"

namespace ghostrank {
namespace {

// Calls visit(i, whether element i is drawn, how many were before).
template <typename Visit>
void each_element(std::uint64_t n, const CompressionOptions& options, const Visit& visit) {
  const std::uint64_t k = kept_by_ratio(n, options);
  std::uint64_t chosen = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double left = static_cast<double>(n - i), open = static_cast<double>(k - chosen);
    const bool yes = left * static_cast<double>(unit_draw(options.shared_seed, i)) < open;
    visit(i, yes, chosen);
    chosen += yes ? 1 : 0;
  }
}

void compress(std::span<const float> tensor, const CompressionOptions& options,
              std::byte* payload) {
  auto* values = reinterpret_cast<float*>(payload);
  each_element(tensor.size(), options, [&](std::uint64_t i, bool yes, std::uint64_t at) {
    if (yes) values[at] = tensor[i];
  });
}

void decompress(std::span<const std::byte> payload, const CompressionOptions& options,
                std::span<float> tensor) {
  const auto* values = reinterpret_cast<const float*>(payload.data());
  each_element(tensor.size(), options, [&](std::uint64_t i, bool yes, std::uint64_t at) {
    tensor[i] = yes ? values[at] : 0.0f;
  });
}

double error(std::span<const float> tensor, const CompressionOptions& options) {
  float largest = 0;
  each_element(tensor.size(), options, [&](std::uint64_t i, bool yes, std::uint64_t) {
    if (!yes) largest = std::max(largest, std::abs(tensor[i]));
  });
  return static_cast<double>(largest);
}

}  // namespace

const Compressor kRandomK{.name = "randomk",
                          .exchange = Func::all_reduce,
                          .payload = DataType::float32,
                          .cost = fitted(20.6),
                          .size = kept_by_ratio,
                          .compress = compress,
                          .decompress = decompress,
                          .error = error,
                          .kept = kept_by_ratio};

}  // namespace ghostrank
