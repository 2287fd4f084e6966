// RedSync (Fang et al., 2019): a threshold between the mean and the largest magnitude, found by
// bisection until between k and 2 k elements exceed it, or until the interval is a fifth of the
// whole.
#include <algorithm>
#include <cmath>
#include <limits>

#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"
#include "collectives/compress/selection.h"

namespace ghostrank {
namespace {

float by_halving(std::span<const float> tensor, const CompressionOptions& options) {
  constexpr float kEnd = 0.2f;
  const auto mean = static_cast<float>(mean_magnitude(tensor));
  const float largest = largest_magnitude(tensor);
  if (largest == 0 || !std::isfinite(mean)) return std::numeric_limits<float>::infinity();
  const std::uint64_t k = kept_by_ratio(tensor.size(), options);
  float low = 0, high = 1, threshold = largest;
  while (high - low > kEnd) {
    const float middle = low + (high - low) / 2;
    threshold = mean + middle * (largest - mean);
    const std::uint64_t above = count_selected(tensor, threshold);
    if (above > k && above < 2 * k) break;
    (above <= k ? high : low) = middle;
  }
  return threshold;
}

}  // namespace

const Compressor kRedSync = selects_by<by_halving>("redsync", by_passes(8, 12), true);

}  // namespace ghostrank
