// How well the mean of samples is known, sample by sample.
//
// Threading: plain values; student_t95() is pure.
#pragma once

#include <cstdint>
#include <optional>

namespace ghostrank {

// Two-sided 95 % quantile of Student's t.
double student_t95(std::int64_t degrees_of_freedom);

// Mean and variance of all samples so far, by Welford's recurrence: of constant size, and exact to
// the rounding of doubles however many samples there are.
class RunningMean {
 public:
  void add(double sample);
  std::int64_t count() const { return count_; }
  double mean() const { return mean_; }
  // Half of the mean's 95 % interval by Student's t, as a share of the mean; empty: fewer than two
  // samples, or a mean of 0.
  std::optional<double> half_width() const;

 private:
  std::int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

}  // namespace ghostrank
