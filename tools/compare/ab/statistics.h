// The statistics of an A/B comparison. A run (its processes, connections and start) is the unit:
// its sample is the median step of its measured iterations. A block holds one run of each variant,
// drawn with the same jitter; samples of two variants are paired by block.
//
// The interval of a ratio is a bootstrap over blocks: percentiles of the ratio of medians over
// kResamples draws of whole blocks. For few runs plain percentiles are too narrow by about
// sqrt((n - 1) / n) and by the ratio of Student's quantile to the normal one, so they are widened
// by both ("expanded percentile interval": T. Hesterberg, What Teachers Should Know About the
// Bootstrap, The American Statistician 69, 2015, section 4.2).
//
// Threading: pure functions of their arguments; equal seeds give equal intervals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ghostrank {

inline constexpr int kResamples = 10'000;
// With fewer blocks all of them favour one of two equal variants with a probability above 5 %
// (2 * 2^-5 = 6 %), so that no interval of theirs can tell an effect from chance.
inline constexpr std::size_t kLeastBlocksForAnEffect = 6;

struct Interval {
  double low = 0, high = 0;
};

// 95 % interval of the median; empty with fewer than two samples.
std::optional<Interval> median_interval(std::span<const double> samples, std::uint64_t seed);

struct RatioEstimate {
  double value = 1;              // median of `of`, divided by the median of `to`
  std::optional<Interval> ci95;  // empty with fewer than two blocks
  std::size_t blocks = 0;
  double half_width() const;  // of the interval relative to the value; infinite without an interval
};
// `of` and `to` have one sample per block, in the same order.
RatioEstimate ratio_of_medians(std::span<const double> of, std::span<const double> to,
                               std::uint64_t seed);

enum class Verdict { faster, slower, same, inconclusive };
std::string name_of(Verdict verdict);

struct Judgement {
  Verdict verdict = Verdict::inconclusive;
  std::string reason;  // of `same` and `inconclusive`
};
// An effect counts only if the interval excludes 1 and the ratio differs from 1 by more than
// `margin`. `same` needs an interval within the margin.
Judgement judge(const RatioEstimate& ratio, double margin);
// For variants that chance does not change: there is no interval.
Judgement judge_exact(double ratio, double margin);

// The order of `variants` runs in a block: a random permutation of 0 .. variants - 1.
std::vector<std::size_t> order_in_block(std::size_t variants, std::size_t block,
                                        std::uint64_t seed);

}  // namespace ghostrank
