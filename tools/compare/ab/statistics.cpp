#include "tools/compare/ab/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "emulator/common/random.h"
#include "emulator/result/mean_interval.h"
#include "profiles/median.h"
#include "tools/text/humane.h"
#include "tools/text/statistics.h"

namespace ghostrank {
namespace {

// Streams of random numbers by purpose: the draws of one do not depend on those of another.
constexpr std::uint64_t kForOrder = 1, kForMedian = 2, kForRatio = 3;

// Probability below the lower end of the expanded percentile interval of n blocks, and above the
// upper one.
double tail_of(std::size_t n) {
  const auto size = static_cast<double>(n);
  const double z = std::sqrt(size / (size - 1)) * student_t95(static_cast<int>(n) - 1);
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

// Percentiles of `statistic` over draws of n blocks with replacement. `statistic` gets the numbers
// of the drawn blocks.
template <typename Statistic>
Interval bootstrap(std::size_t n, RandomBits random, const Statistic& statistic) {
  std::vector<double> values;
  values.reserve(kResamples);
  std::vector<std::size_t> drawn(n);
  for (int i = 0; i < kResamples; ++i) {
    for (std::size_t& block : drawn) block = random.next() % n;
    values.push_back(statistic(drawn));
  }
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) { return values[std::lround(share * (kResamples - 1))]; };
  const double tail = tail_of(n);
  return {at(tail), at(1 - tail)};
}

}  // namespace

std::optional<Interval> median_interval(std::span<const double> samples, std::uint64_t seed) {
  if (samples.size() < 2) return std::nullopt;
  std::vector<double> values(samples.size());
  return bootstrap(samples.size(), RandomBits{seed, kForMedian}, [&](const auto& drawn) {
    std::transform(drawn.begin(), drawn.end(), values.begin(),
                   [&](std::size_t block) { return samples[block]; });
    return median(values);
  });
}

double RatioEstimate::half_width() const {
  if (!ci95 || value <= 0) return std::numeric_limits<double>::infinity();
  return (ci95->high - ci95->low) / 2 / value;
}

RatioEstimate ratio_of_medians(std::span<const double> of, std::span<const double> to,
                               std::uint64_t seed) {
  RatioEstimate estimate;
  estimate.blocks = of.size();
  estimate.value = median({of.begin(), of.end()}) / median({to.begin(), to.end()});
  if (of.size() < 2) return estimate;
  std::vector<double> upper(of.size()), lower(of.size());
  estimate.ci95 = bootstrap(of.size(), RandomBits{seed, kForRatio}, [&](const auto& drawn) {
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      upper[i] = of[drawn[i]];
      lower[i] = to[drawn[i]];
    }
    return median(upper) / median(lower);
  });
  return estimate;
}

std::string name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return "faster";
    case Verdict::slower:
      return "slower";
    case Verdict::same:
      return "same";
    case Verdict::inconclusive:
      break;
  }
  return "inconclusive";
}

constexpr const char* kNoRatio = "no ratio: a step takes no time";

Judgement judge(const RatioEstimate& ratio, double margin) {
  if (ratio.blocks < kLeastBlocksForAnEffect) {
    return {Verdict::inconclusive, "too few runs: an effect needs " +
                                       std::to_string(kLeastBlocksForAnEffect) +
                                       " of each variant or more"};
  }
  if (!std::isfinite(ratio.value)) return {Verdict::inconclusive, kNoRatio};
  const Interval& ci = *ratio.ci95;
  if (margin > 0 && ci.low >= 1 - margin && ci.high <= 1 + margin)
    return {Verdict::same, "the interval lies within the margin of " + humane_percent(margin)};
  if (ci.low <= 1 && ci.high >= 1)
    return {Verdict::inconclusive, "no effect shown: the interval includes 1"};
  if (std::abs(ratio.value - 1) <= margin) {
    return {Verdict::inconclusive,
            "no effect shown: the difference is within the margin of " + humane_percent(margin)};
  }
  return {ratio.value < 1 ? Verdict::faster : Verdict::slower, ""};
}

Judgement judge_exact(double ratio, double margin) {
  if (!std::isfinite(ratio)) return {Verdict::inconclusive, kNoRatio};
  if (ratio == 1) return {Verdict::same, "deterministic: equal"};
  if (std::abs(ratio - 1) <= margin)
    return {Verdict::same, "deterministic: within the margin of " + humane_percent(margin)};
  return {ratio < 1 ? Verdict::faster : Verdict::slower, ""};
}

std::vector<std::size_t> order_in_block(std::size_t variants, std::size_t block,
                                        std::uint64_t seed) {
  std::vector<std::size_t> order(variants);
  std::iota(order.begin(), order.end(), 0);
  RandomBits random{seed, kForOrder, block};
  for (std::size_t i = variants; i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
  return order;
}

}  // namespace ghostrank
