#include "collectives/compress/sparsify/fits.h"

#include <algorithm>
#include <cmath>

namespace ghostrank::fits {
namespace {

// Bisection of an increasing function on [low, high].
template <typename Function>
double solve(double low, double high, double value, const Function& f) {
  for (int i = 0; i < 200 && high - low > 1e-14 * std::abs(high); ++i) {
    const double middle = low + (high - low) / 2;
    (f(middle) < value ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

// P(a, x) by its series, for x < a + 1.
double by_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (int n = 1; n < 1000 && term > sum * 1e-16; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return sum * std::exp(a * std::log(x) - x - std::lgamma(a));
}

// 1 - P(a, x) by its continued fraction (Lentz), for x >= a + 1.
double by_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int i = 1; i < 1000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    c = b + an / c;
    c = std::abs(c) < kTiny ? kTiny : c;
    const double change = d * c;
    h *= change;
    if (std::abs(change - 1) < 1e-15) break;
  }
  return std::exp(a * std::log(x) - x - std::lgamma(a)) * h;
}

}  // namespace

double normal_quantile(double p) {
  // The upper tail is exact where p is close to 1.
  if (p < 0.5) return -normal_quantile(1 - p);
  const double tail = 1 - p;
  return solve(0, 40, -tail, [](double x) { return -0.5 * std::erfc(x / std::sqrt(2.0)); });
}

double gamma_share(double a, double x) {
  if (x <= 0) return 0;
  return x < a + 1 ? by_series(a, x) : 1 - by_fraction(a, x);
}

double gamma_quantile(double a, double p) {
  if (p <= 0) return 0;
  double high = std::max(1.0, a);
  while (gamma_share(a, high) < p && high < 1e6) high *= 2;
  return solve(0, high, p, [&](double x) { return gamma_share(a, x); });
}

}  // namespace ghostrank::fits
