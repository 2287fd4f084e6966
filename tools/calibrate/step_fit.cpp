#include "tools/calibrate/step_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace ghostrank {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

constexpr double kDifference = 0.02;  // of a logarithm, for slopes
constexpr double kLongestStep = 0.7;  // of a logarithm, of one step
constexpr double kDone = 1e-4;        // a step so short ends the search
constexpr int kMostSteps = 20;
constexpr double kLeastDamping = 1e-9, kMostDamping = 1e6;
constexpr double kFarStart = 1;  // of a logarithm, between starts
constexpr std::size_t kStarts = 4;
constexpr int kHeldOutSteps = 3;
constexpr double kHeldOutDone = 1e-3;
constexpr double kMatters = 0.01;
constexpr double kFar = 0.05;  // a residual beyond it counts by its size, not its square
constexpr double kWorthANumber = 0.9;
constexpr std::size_t kRowsForANumber = 3;

// Solves a x = b by elimination; a is symmetric and positive definite.
Vector solve(Matrix a, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t c = 0; c < n; ++c)
    for (std::size_t r = c + 1; r < n; ++r) {
      const double factor = a[r][c] / a[c][c];
      for (std::size_t k = c; k < n; ++k) a[r][k] -= factor * a[c][k];
      b[r] -= factor * b[c];
    }
  for (std::size_t r = n; r-- > 0;) {
    for (std::size_t k = r + 1; k < n; ++k) b[r] -= a[r][k] * b[k];
    b[r] /= a[r][r];
  }
  return b;
}

class Fitter {
 public:
  Fitter(const std::vector<FitNumber>& numbers, const Vector& measured, const Predict& predict)
      : numbers_(numbers), measured_(measured), predict_(predict), without_(measured.size()) {}

  StepFit fit() {
    Vector best;
    for (const Vector& start : starts()) {
      const Vector at = descended(start, kMostSteps, kDone);
      if (best.empty() || cost(at) < cost(best)) best = at;
    }
    return around(best);
  }

 private:
  // The best of a grid around the given start.
  std::vector<Vector> starts() {
    Vector own;
    for (const FitNumber& n : numbers_) own.push_back(std::log(n.start));
    std::vector<Vector> grid{clamped(own)};
    for (std::size_t n = 0; n < own.size(); ++n)
      for (std::size_t i = 0, end = grid.size(); i < end; ++i)
        for (const double far : {-kFarStart, kFarStart}) {
          Vector other = grid[i];
          other[n] += far;
          grid.push_back(clamped(other));
        }
    std::stable_sort(grid.begin(), grid.end(),
                     [&](const Vector& a, const Vector& b) { return cost(a) < cost(b); });
    grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
    grid.resize(std::min(grid.size(), kStarts));
    return grid;
  }

  // At most so many steps from `at`; one that is shorter than `done` ends the search.
  Vector descended(Vector at, int most_steps, double done) {
    double damping = 1e-3;
    for (int i = 0; i < most_steps; ++i) {
      const Vector next = better(at, slopes_at(at), damping);
      if (distance(at, next) < done) break;
      at = next;
    }
    return at;
  }

  // Where a step from `at` lowers the cost; `at`, if none does. The damping grows until a step
  // helps, and is a tenth for the next one.
  Vector better(const Vector& at, const Matrix& slopes, double& damping) {
    const double before = cost(at);
    for (; damping < kMostDamping; damping *= 10) {
      const Vector next = stepped(at, slopes, damping);
      if (!(cost(next) < before)) continue;
      damping = std::max(kLeastDamping, damping / 10);
      return next;
    }
    return at;
  }

  StepFit around(const Vector& at) {
    StepFit fit;
    const std::size_t rows = measured_.size();
    for (const double v : at) fit.values.push_back(std::exp(v));
    fit.least = fit.most = fit.values;
    for (std::size_t row = 0; row < rows; ++row) fit.predicted.push_back(time(row, at));
    for (std::size_t row = 0; row < rows; ++row) {
      without_ = row;
      const Vector other = descended(at, kHeldOutSteps, kHeldOutDone);
      without_ = rows;
      fit.held_out.push_back(time(row, other));
      for (std::size_t n = 0; n < other.size(); ++n) {
        fit.least[n] = std::min(fit.least[n], std::exp(other[n]));
        fit.most[n] = std::max(fit.most[n], std::exp(other[n]));
      }
      const double error = std::abs(fit.held_out[row] / measured_[row] - 1);
      fit.mean_error += error / static_cast<double>(rows);
      fit.worst = std::max(fit.worst, error);
    }
    return fit;
  }

  double time(std::size_t row, const Vector& at) {
    const auto known = known_.find({row, at});
    if (known != known_.end()) return known->second;
    Vector values;
    for (const double v : at) values.push_back(std::exp(v));
    return known_[{row, at}] = predict_(row, values);
  }
  double residual(std::size_t row, const Vector& at) {
    return std::log(time(row, at) / measured_[row]);
  }
  // Huber's loss: quadratic up to kFar, then linear. The row that is held out does not count.
  double cost(const Vector& at) {
    double sum = 0;
    for (std::size_t row = 0; row < measured_.size(); ++row) {
      const double r = std::abs(residual(row, at));
      if (row != without_) sum += r <= kFar ? r * r : kFar * (2 * r - kFar);
    }
    return sum;
  }

  // By row and number; a difference that would leave the bounds goes the other way.
  Matrix slopes_at(const Vector& at) {
    Matrix slopes(measured_.size(), Vector(at.size()));
    for (std::size_t n = 0; n < at.size(); ++n) {
      Vector beside = at;
      beside[n] += kDifference;
      if (beside[n] > std::log(numbers_[n].most)) beside[n] = at[n] - kDifference;
      for (std::size_t row = 0; row < measured_.size(); ++row)
        slopes[row][n] = (residual(row, beside) - residual(row, at)) / (beside[n] - at[n]);
    }
    return slopes;
  }

  Vector stepped(const Vector& at, const Matrix& slopes, double damping) {
    Matrix a(at.size(), Vector(at.size()));
    Vector b(at.size());
    for (std::size_t row = 0; row < measured_.size(); ++row) {
      if (row == without_) continue;
      const double off = residual(row, at);
      const double weight = std::min(1., kFar / std::max(kFar, std::abs(off)));
      for (std::size_t n = 0; n < at.size(); ++n) {
        b[n] -= weight * slopes[row][n] * off;
        for (std::size_t k = 0; k < at.size(); ++k)
          a[n][k] += weight * slopes[row][n] * slopes[row][k];
      }
    }
    double most = 1e-12;
    for (std::size_t n = 0; n < at.size(); ++n) most = std::max(most, a[n][n]);
    for (std::size_t n = 0; n < at.size(); ++n) a[n][n] += damping * a[n][n] + 1e-9 * most;
    Vector next = solve(std::move(a), std::move(b));
    for (std::size_t n = 0; n < at.size(); ++n)
      next[n] = at[n] + std::clamp(next[n], -kLongestStep, kLongestStep);
    return clamped(next);
  }

  Vector clamped(Vector at) const {
    for (std::size_t n = 0; n < at.size(); ++n)
      at[n] = std::clamp(at[n], std::log(numbers_[n].least), std::log(numbers_[n].most));
    return at;
  }
  static double distance(const Vector& a, const Vector& b) {
    double most = 0;
    for (std::size_t n = 0; n < a.size(); ++n) most = std::max(most, std::abs(a[n] - b[n]));
    return most;
  }

  const std::vector<FitNumber>& numbers_;
  const Vector& measured_;
  const Predict& predict_;
  std::size_t without_;  // row that is held out; the number of rows: none
  std::map<std::pair<std::size_t, Vector>, double> known_;
};

}  // namespace

std::vector<bool> matter(const std::vector<FitNumber>& numbers, std::size_t rows,
                         const Predict& predict) {
  std::vector<bool> out(numbers.size());
  Vector values;
  for (const FitNumber& n : numbers) values.push_back(n.start);
  for (std::size_t row = 0; row < rows; ++row) {
    const double time = predict(row, values);
    for (std::size_t n = 0; n < numbers.size(); ++n)
      for (const double factor : {.5, 2.}) {
        if (out[n]) continue;
        Vector other = values;
        other[n] = std::clamp(values[n] * factor, numbers[n].least, numbers[n].most);
        out[n] = std::abs(predict(row, other) / time - 1) > kMatters;
      }
  }
  return out;
}

StepFit fit_steps(const std::vector<FitNumber>& numbers, const std::vector<double>& measured,
                  const Predict& predict) {
  return Fitter(numbers, measured, predict).fit();
}

StepFit fit_fewest(const std::vector<FitNumber>& numbers, const std::vector<double>& measured,
                   const Predict& predict) {
  std::optional<StepFit> best;
  for (std::size_t n = 1; n <= numbers.size(); ++n) {
    if (best && measured.size() < kRowsForANumber * n) break;
    const std::vector<FitNumber> some(numbers.begin(),
                                      numbers.begin() + static_cast<std::ptrdiff_t>(n));
    const Predict with_the_others = [&](std::size_t row, const Vector& values) {
      Vector all = values;
      for (std::size_t rest = n; rest < numbers.size(); ++rest)
        all.push_back(numbers[rest].otherwise);
      return predict(row, all);
    };
    StepFit fit = fit_steps(some, measured, with_the_others);
    if (!best || fit.mean_error < kWorthANumber * best->mean_error) best = std::move(fit);
  }
  return *best;
}

}  // namespace ghostrank
