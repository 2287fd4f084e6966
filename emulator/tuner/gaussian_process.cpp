#include "emulator/tuner/gaussian_process.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace ghostrank {
namespace {

constexpr double kSmallestLength = 1e-2, kLengthStep = 1.05;
constexpr int kLengths = 300;  // up to some 2e4

using Matrix = std::vector<std::vector<double>>;

double distance(const Point& a, const Point& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

// Solves L x = b, L lower.
std::vector<double> solve_lower(const Matrix& lower, std::vector<double> b) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) b[i] -= lower[i][j] * b[j];
    b[i] /= lower[i][i];
  }
  return b;
}

// Solves L^T x = b.
std::vector<double> solve_upper(const Matrix& lower, std::vector<double> b) {
  for (std::size_t i = b.size(); i-- > 0;) {
    for (std::size_t j = i + 1; j < b.size(); ++j) b[i] -= lower[j][i] * b[j];
    b[i] /= lower[i][i];
  }
  return b;
}

// Cholesky: `a` becomes L with a = L L^T. False where `a` is not positive definite.
bool factorise(Matrix& a) {
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      if (i == j && !(sum > 0)) return false;
      a[i][j] = i == j ? std::sqrt(sum) : sum / a[j][j];
    }
  return true;
}

}  // namespace

GaussianProcess::GaussianProcess(GaussianKernel kernel, std::vector<Point> points,
                                 const std::vector<double>& values)
    : kernel_(kernel), points_(std::move(points)), values_(values) {
  const auto count = static_cast<double>(values_.size());
  mean_ = std::accumulate(values_.begin(), values_.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values_) squares += (value - mean_) * (value - mean_);
  scale_ = squares > 0 ? std::sqrt(squares / count) : 1;
  for (double& value : values_) value = (value - mean_) / scale_;
  double best = -std::numeric_limits<double>::infinity(), likely = 1, length = kSmallestLength;
  for (int i = 0; i < kLengths; ++i, length *= kLengthStep)
    if (const double found = fit(length); found > best) {
      best = found;
      likely = length;
    }
  length_ = likely;
  fit(length_);
}

double GaussianProcess::covariance(const Point& a, const Point& b, double length) const {
  const double r = distance(a, b) / length;
  if (kernel_.kind == GaussianKernel::Kind::squared_exponential) return std::exp(-r * r / 2);
  const double s = std::sqrt(5.0) * r;
  return (1 + s + s * s / 3) * std::exp(-s);
}

double GaussianProcess::fit(double length) {
  Matrix a(points_.size(), std::vector<double>(points_.size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j)
      a[i][j] = covariance(points_[i], points_[j], length) + (i == j ? kernel_.noise : 0);
  if (!factorise(a)) return -std::numeric_limits<double>::infinity();
  factor_ = std::move(a);
  weights_ = solve_upper(factor_, solve_lower(factor_, values_));
  double likelihood = 0;
  for (std::size_t i = 0; i < values_.size(); ++i)
    likelihood -= values_[i] * weights_[i] / 2 + std::log(factor_[i][i]);
  return likelihood;
}

GaussianProcess::Guess GaussianProcess::at(const Point& point) const {
  std::vector<double> k;
  for (const Point& tried : points_) k.push_back(covariance(tried, point, length_));
  const double mean = std::inner_product(k.begin(), k.end(), weights_.begin(), 0.0);
  const std::vector<double> v = solve_lower(factor_, k);
  const double variance = 1 - std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
  return {mean_ + scale_ * mean, scale_ * std::sqrt(std::fmax(variance, 0))};
}

double expected_improvement(const GaussianProcess::Guess& guess, double best, double margin) {
  const double gain = guess.mean - best - margin;
  if (guess.deviation <= 0) return std::fmax(gain, 0);
  const double z = gain / guess.deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
  const double below = std::erfc(-z / std::sqrt(2.0)) / 2;
  return gain * below + guess.deviation * density;
}

}  // namespace ghostrank
