// GaussianKSGD (Shi et al., 2019): the threshold that a normal distribution of the tensor's
// deviation would need for the ratio. The elements above it are counted up to five times; between
// two counts the threshold is halved if fewer than 2 k / 3 elements exceed it, and raised by half
// if more than 4 k / 3 do. The elements of the last count are sent. The authors' later releases
// count the same way (the first release three times), but send only the first k of the elements.
#include <algorithm>
#include <cmath>
#include <limits>

#include "collectives/compress/methods.h"
#include "collectives/compress/selection.h"
#include "collectives/compress/sparsify/fits.h"

namespace ghostrank {
namespace {

float by_deviation(std::span<const float> tensor, const CompressionOptions& options) {
  double sum = 0, squares = 0;
  for (const float x : tensor) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const auto n = static_cast<double>(tensor.size());
  const double deviation = std::sqrt(std::max(0.0, squares / n - sum / n * sum / n));
  auto threshold = static_cast<float>(deviation * fits::normal_quantile(1 - options.ratio / 2));
  const auto least = std::numeric_limits<float>::denorm_min();
  if (!std::isfinite(threshold)) return std::numeric_limits<float>::infinity();
  const auto k = static_cast<double>(kept_by_ratio(tensor.size(), options));
  constexpr int kCounts = 5;
  for (int count = 1; count < kCounts; ++count) {
    const auto above = static_cast<double>(count_selected(tensor, std::max(threshold, least)));
    if (above < 2 * k / 3)
      threshold *= 0.5f;
    else if (above > 4 * k / 3)
      threshold *= 1.5f;
    else
      break;
  }
  return std::max(threshold, least);
}

}  // namespace

const Compressor kGaussianKsgd = selects_by<by_deviation>("gaussian_ksgd", by_passes(6, 10), true);

}  // namespace ghostrank
