// Fits a few positive numbers to measured times, given a function that predicts the times from the
// numbers, and compares each time with a fit to the others.
//
// Least squares of log(predicted / measured), so that every time counts alike. Residuals beyond 5 %
// count linearly (Huber), so that a time which nothing explains does not pull at all others. Solved
// by Levenberg-Marquardt on the logarithms of the numbers, with slopes by differences, inside their
// bounds. Where a time is the longer of two, a host's and a GPU's, a search may end where no step
// helps, far from the best numbers; so several begin at the best of a grid around the start.
// A time is held out by fitting again without it, in three steps from the fit to all times.
//
// Units: seconds. Threading: pure functions, apart from what `predict` does.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ghostrank {

struct FitNumber {
  std::string name;
  double start = 1, least = 0, most = 1;  // all > 0
  double otherwise = 1;                   // its value while it is not fitted; may be 0
};

// The time of row `row` with these values of the numbers.
using Predict = std::function<double(std::size_t row, const std::vector<double>& values)>;

struct StepFit {
  std::vector<double> values;
  std::vector<double> predicted;     // by row
  std::vector<double> held_out;      // by row: predicted by the fit without it
  std::vector<double> least, most;   // of each value, among the fits without a row
  double mean_error = 0, worst = 0;  // held out: mean and greatest |predicted / measured - 1|
};

// Which of the numbers change any time by more than 1 % when they double or halve.
std::vector<bool> matter(const std::vector<FitNumber>& numbers, std::size_t rows,
                         const Predict& predict);

// Needs at least two rows more than numbers.
StepFit fit_steps(const std::vector<FitNumber>& numbers, const std::vector<double>& measured,
                  const Predict& predict);

// The fit of the first number, the first two, ... that predicts best what was held out; one number
// more has to lower the mean error by a tenth, and there are at least three rows for every number.
StepFit fit_fewest(const std::vector<FitNumber>& numbers, const std::vector<double>& measured,
                   const Predict& predict);

}  // namespace ghostrank
