// A Gaussian process over a few tried points: estimates the function elsewhere, and how sure the
// estimate is. The tried values are taken relative to their mean and standard deviation. The
// kernel's length scale is the most likely one of a fixed, fine list, so a fit is repeatable.
//
// Units: the caller's. Threading: plain value.
#pragma once

#include <vector>

namespace ghostrank {

using Point = std::vector<double>;

struct GaussianKernel {
  enum class Kind : unsigned char { matern52, squared_exponential };
  Kind kind = Kind::matern52;
  double noise = 1e-6;  // variance of the measurement error, relative to that of the values
};

class GaussianProcess {
 public:
  // `points` and `values` of the same number, at least one; all points of the same dimension.
  GaussianProcess(GaussianKernel kernel, std::vector<Point> points,
                  const std::vector<double>& values);

  struct Guess {
    double mean = 0, deviation = 0;
  };
  Guess at(const Point& point) const;
  double length() const { return length_; }  // of the kernel, in the points' units

 private:
  double covariance(const Point& a, const Point& b, double length) const;
  // The log likelihood of the values; keeps the factor and the weights.
  double fit(double length);

  GaussianKernel kernel_;
  std::vector<Point> points_;
  std::vector<double> values_;  // normalised
  double mean_ = 0, scale_ = 1, length_ = 1;
  std::vector<std::vector<double>> factor_;  // Cholesky's, lower
  std::vector<double> weights_;
};

// How much better than `best` a point may turn out, in the values' units: the expected improvement
// beyond `margin`.
double expected_improvement(const GaussianProcess::Guess& guess, double best, double margin);

}  // namespace ghostrank
