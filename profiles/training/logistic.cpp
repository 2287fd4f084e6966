#include "profiles/training/logistic.h"

#include <algorithm>
#include <cmath>

#include "collectives/common/dice.h"

namespace ghostrank {
namespace {

// Uniform within +-1.
float drawn(checking::Dice& dice) { return static_cast<float>(dice.below(2'000'001)) * 1e-6f - 1; }

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

double predicted(std::span<const float> weights, std::span<const float> x) {
  return 1 / (1 + std::exp(-dot(weights, x)));
}

std::vector<float> drawn_rule(std::uint64_t weights, std::uint64_t seed) {
  checking::Dice dice(seed);
  std::vector<float> rule(weights);
  for (std::uint64_t i = 0; i < weights; ++i)
    rule[i] = std::ldexp(drawn(dice), -static_cast<int>(4 * i / weights));
  return rule;
}

}  // namespace

LogisticTask::LogisticTask(int ranks, int samples, std::uint64_t weights, std::uint64_t seed) {
  const std::vector<float> rule = drawn_rule(weights, seed);
  const auto scale = static_cast<float>(std::sqrt(40 / static_cast<double>(weights)));
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Sample>& own = of_rank_.emplace_back();
    for (int s = 0; s < samples; ++s) {
      checking::Dice dice(checking::mix(seed) + static_cast<std::uint64_t>(rank) * 1'000'003 + s +
                          1);
      Sample& sample = own.emplace_back();
      sample.x.resize(weights);
      for (float& x : sample.x) x = scale * drawn(dice);
      sample.y = dot(rule, sample.x) > 0;
    }
  }
}

std::vector<float> LogisticTask::gradient(int rank, std::span<const float> weights) const {
  const std::vector<Sample>& own = of_rank_[rank];
  std::vector<double> sum(weights.size());
  for (const Sample& sample : own) {
    const double off = predicted(weights, sample.x) - (sample.y ? 1 : 0);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += off * sample.x[i];
  }
  std::vector<float> mean(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i)
    mean[i] = static_cast<float>(sum[i] / static_cast<double>(own.size()));
  return mean;
}

double LogisticTask::loss(std::span<const float> weights) const {
  double loss = 0, samples = 0;
  for (const std::vector<Sample>& own : of_rank_)
    for (const Sample& sample : own) {
      const double p = std::clamp(predicted(weights, sample.x), 1e-12, 1 - 1e-12);
      loss -= std::log(sample.y ? p : 1 - p);
      ++samples;
    }
  return loss / samples;
}

}  // namespace ghostrank
