// The few statistics a result carries. None of them invents a figure: what too few samples cannot
// tell is absent.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <span>
#include <utility>

namespace ghostrank {

struct Summary {
  std::optional<double> median, mean;
  std::optional<double> cv;                       // standard deviation / mean; two samples or more
  std::optional<std::pair<double, double>> ci95;  // of the mean, Student t; two samples or more
  std::optional<double> p99;                      // nearest rank; 100 samples or more
};

Summary summarize(std::span<const double> samples);

// The same of what follows from the input alone, where chance has no part: without the interval,
// which would claim a doubt that there is not.
Summary summarize_exact(std::span<const double> samples);

// Two-sided 95 % quantile of Student's t.
double student_t95(int degrees_of_freedom);

}  // namespace ghostrank
