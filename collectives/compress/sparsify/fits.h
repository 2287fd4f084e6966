// Quantiles that threshold estimators need.
//
// Threading: pure functions. Accuracy: 1e-9 relative.
#pragma once

namespace ghostrank::fits {

// x with P(X <= x) = p for a standard normal X; p in (0, 1).
double normal_quantile(double p);

// The regularised lower incomplete gamma function P(a, x), and its inverse in x for p in [0, 1).
double gamma_share(double a, double x);
double gamma_quantile(double a, double p);

}  // namespace ghostrank::fits
