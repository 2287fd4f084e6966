// The statistics of a result. A figure that needs more samples than there are is absent.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <span>
#include <utility>

namespace ghostrank {

struct Summary {
  std::optional<double> median, mean;
  std::optional<double> cv;  // standard deviation / mean; two samples or more
  // Of the mean, by Student's t; two samples or more. Not below 0 if no sample is.
  std::optional<std::pair<double, double>> ci95;
  std::optional<double> p99;  // nearest rank; 100 samples or more
};

Summary summarize(std::span<const double> samples);

// As summarize(), but without the confidence interval: for samples that follow from the input
// alone, so that chance adds no doubt.
Summary summarize_exact(std::span<const double> samples);

}  // namespace ghostrank
