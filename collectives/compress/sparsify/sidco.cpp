// SIDCo (Abdelmoniem et al., 2021): a threshold from a fitted distribution of the magnitudes, in
// one pass a stage. With a ratio d below options.first_stage, a first stage keeps that share, and
// each later one is fitted to the excesses of those that are left.
//
//   sidco-e    exponential          eta = -mean ln d
//   sidco-p    generalised Pareto   eta = alpha / k (1 - d^k), by moments:
//              k = (m^2/v - 1) / 2, alpha = m (m^2/v + 1) / 2     m: mean, v: variance
//   sidco-gp   gamma, then Pareto   eta = beta gamma_quantile(alpha, 1 - d) (fits.h),
//              alpha from ln m - mean(ln) (Minka's approximation), beta = m / alpha
//
// Stage m >= 2 adds the last threshold to eta of the excesses. options.stages counts stages; 0: as
// many as steps of 0.2 (e), 0.075 (p) or 0.1 (gp) need, the last one smaller.
#include "collectives/compress/sparsify/sidco.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "collectives/compress/methods.h"
#include "collectives/compress/selection.h"
#include "collectives/compress/sparsify/fits.h"

namespace ghostrank {
namespace {

constexpr int kAdaptEvery = 5;    // steps
constexpr int kForgetAfter = 8;   // looks: gradients drift
constexpr double kMostOff = 0.2;  // off the ratio: up to this, the number of stages stays
// The first stage's share, its steps and bounds, and how far off the ratio it stays.
constexpr double kFirst = 0.25, kFirstStep = 0.05, kFirstLeast = 0.05, kFirstMost = 0.5;
constexpr double kFirstOff = 0.1;

enum class Law { exponential, pareto, gamma };

constexpr double step_of(Law law) {
  return law == Law::exponential ? 0.2 : law == Law::pareto ? 0.075 : 0.1;
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments_of(std::span<const float> excesses, float base) {
  double sum = 0, squares = 0;
  for (const float a : excesses) {
    const double x = static_cast<double>(a) - static_cast<double>(base);
    sum += x;
    squares += x * x;
  }
  const auto n = static_cast<double>(excesses.size());
  return {sum / n, std::max(0.0, squares / n - sum / n * sum / n)};
}

double exponential_quantile(const Moments& m, double share) { return -m.mean * std::log(share); }

double pareto_quantile(const Moments& m, double share) {
  if (m.variance <= 0) return m.mean;
  const double ratio = m.mean * m.mean / m.variance;
  const double k = (ratio - 1) / 2, alpha = m.mean * (ratio + 1) / 2;
  if (std::abs(k) < 1e-9) return -alpha * std::log(share);
  return alpha / k * (1 - std::pow(share, k));
}

double gamma_law_quantile(std::span<const float> magnitudes, double mean, double share) {
  constexpr double kTiny = 1e-30;  // keeps zeros out of the logarithm
  double logs = 0;
  for (const float a : magnitudes) logs += std::log(static_cast<double>(a) + kTiny);
  const double s = std::log(mean) - logs / static_cast<double>(magnitudes.size());
  if (!(s > 1e-12)) return mean;  // all magnitudes are equal
  const double alpha = (3 - s + std::sqrt((s - 3) * (s - 3) + 24 * s)) / (12 * s);
  return mean / alpha * fits::gamma_quantile(alpha, 1 - share);
}

// By stage: the share that it keeps of the elements that the stage before has left.
std::vector<double> shares_of(const CompressionOptions& options, double step) {
  const double ratio = options.ratio;
  const double first = options.first_stage;
  if (ratio >= first || options.stages == 1) return {ratio};
  std::vector<double> shares{first};
  const int stages = options.stages > 0 ? options.stages : sidco_stages(ratio, step, first);
  const double rest = ratio / first;
  for (int m = 1; m < stages; ++m) {
    if (options.stages > 0)
      shares.push_back(std::pow(rest, 1.0 / (stages - 1)));
    else
      shares.push_back(m + 1 < stages ? step : rest / std::pow(step, stages - 2));
  }
  return shares;
}

template <Law law>
float by_fit(std::span<const float> tensor, const CompressionOptions& options) {
  std::vector<float> left;
  left.reserve(tensor.size());
  for (const float x : tensor)
    if (std::isfinite(x)) left.push_back(std::abs(x));
  const std::vector<double> shares = shares_of(options, step_of(law));
  double threshold = std::numeric_limits<double>::infinity();  // stays of zeros
  for (std::size_t m = 0; m < shares.size() && !left.empty(); ++m) {
    const float base = m == 0 ? 0 : *std::min_element(left.begin(), left.end());
    const Moments moments = moments_of(left, base);
    if (!(moments.mean > 0)) break;
    const double excess = law == Law::exponential ? exponential_quantile(moments, shares[m])
                          : law == Law::gamma && m == 0
                              ? gamma_law_quantile(left, moments.mean, shares[m])
                              : pareto_quantile(moments, shares[m]);
    threshold = static_cast<double>(base) + excess;
    std::erase_if(left, [&](float a) { return static_cast<double>(a) <= threshold; });
  }
  return std::max(static_cast<float>(threshold), std::numeric_limits<float>::denorm_min());
}

}  // namespace

int sidco_stages(double ratio, double step, double first) {
  if (ratio >= first) return 1;
  return 1 +
         std::max(1, static_cast<int>(std::ceil(std::log(ratio / first) / std::log(step) - 1e-9)));
}

SidcoStages::SidcoStages(double ratio)
    : ratio_(ratio), first_(kFirst), first_off_(std::numeric_limits<double>::infinity()) {
  tried_.resize(static_cast<std::size_t>(std::max(1.0, std::ceil(std::log2(1 / ratio)))));
}

void SidcoStages::sent(double share) {
  sum_ += share / ratio_;
  if (++steps_ < kAdaptEvery) return;
  const double mean = std::max(sum_ / steps_, 1e-9);
  sum_ = 0;
  steps_ = 0;
  tried_[stages_ - 1] = {mean, ++looks_};
  surplus_ = std::clamp(surplus_ + mean - 1, -1.0, 1.0);
  const double off = std::abs(mean - 1);
  const bool worse = off > first_off_ && off <= 2 * kMostOff;  // beyond, gradients have changed
  if (off <= kMostOff)
    surplus_ = 0;
  else if (const int wanted = next(); !worse && wanted != stages_) {
    stages_ = wanted;
    first_off_ = std::numeric_limits<double>::infinity();
    return;
  }
  if (worse) first_way_ = -first_way_;
  correct_first(mean);
}

// A larger share makes most laws send more.
void SidcoStages::correct_first(double mean) {
  const double off = std::abs(mean - 1);
  if (stages_ == 1 || off <= kFirstOff) return;
  const double least = std::max(kFirstLeast, 2 * ratio_);  // leaves something to later fits
  first_ = std::clamp(first_ + first_way_ * (mean < 1 ? kFirstStep : -kFirstStep), least,
                      std::max(least, kFirstMost));
  first_off_ = off;
}

int SidcoStages::next() const {
  const auto off = [&](int stages) {
    const double mean = mean_of(stages);
    return mean > 0 ? std::abs(std::log(mean)) : std::numeric_limits<double>::infinity();
  };
  int best = stages_;
  for (int m = 1; m <= static_cast<int>(tried_.size()); ++m)
    if (off(m) < off(best)) best = m;
  // One sends too much and its neighbour too little: they take turns.
  for (const int beside : {best + 1, best - 1})
    if (mean_of(beside) > 0 && off(beside) < std::log(2.0) &&
        (mean_of(beside) > 1) != (mean_of(best) > 1))
      return (mean_of(best) > 1) == (surplus_ < 0) ? best : beside;
  for (const int beside : {best + 1, best - 1})
    if (mean_of(beside) == 0) return beside;
  return best;
}

double SidcoStages::mean_of(int stages) const {
  if (stages < 1 || stages > static_cast<int>(tried_.size())) return -1;
  const Tried& tried = tried_[stages - 1];
  return looks_ - tried.look < kForgetAfter ? tried.mean : 0;
}

bool has_stages(std::string_view method) { return method.starts_with("sidco-"); }

const Compressor kSidcoE = selects_by<by_fit<Law::exponential>>("sidco-e", by_passes(3, 6), true);
const Compressor kSidcoP = selects_by<by_fit<Law::pareto>>("sidco-p", by_passes(4, 8), true);
const Compressor kSidcoGp = selects_by<by_fit<Law::gamma>>("sidco-gp", by_passes(5, 10), true);

}  // namespace ghostrank
