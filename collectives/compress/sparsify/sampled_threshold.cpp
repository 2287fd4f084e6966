#include "collectives/compress/sparsify/sampled_threshold.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/common/dice.h"

namespace ghostrank {

float sampled_threshold(std::span<const float> magnitudes, double share, unsigned long long seed) {
  if (magnitudes.empty()) return 0;
  constexpr double kSample = 0.01;
  constexpr int kCorrections = 20;
  const auto n = static_cast<double>(magnitudes.size());
  checking::Dice dice(seed);
  std::vector<float> sample(std::max<std::size_t>(1, static_cast<std::size_t>(n * kSample)));
  for (float& x : sample) x = magnitudes[dice.below(magnitudes.size())];
  const auto top = static_cast<std::ptrdiff_t>(
      std::max(1.0, static_cast<double>(static_cast<std::uint64_t>(n * kSample * share))));
  std::nth_element(sample.begin(), sample.begin() + (top - 1), sample.end(), std::greater<>());
  float threshold = sample[top - 1];
  const double target = std::max(1.0, n * share);
  for (int i = 0; i < kCorrections; ++i) {
    const auto above = static_cast<double>(std::count_if(magnitudes.begin(), magnitudes.end(),
                                                         [&](float x) { return x >= threshold; }));
    if (above > 1.25 * target)
      threshold *= 1.25f;
    else if (above < 0.8 * target)
      threshold *= 0.9f;
    else
      break;
  }
  return threshold;
}

}  // namespace ghostrank
