#include "tests/fidelity/report.h"

#include <cmath>
#include <cstdio>

namespace ghostrank::fidelity {
namespace {

template <typename... Values>
std::string format(const char* how, Values... values) {
  char text[128];
  std::snprintf(text, sizeof text, how, values...);
  return text;
}

}  // namespace

std::string milliseconds(double seconds) {
  return format(seconds < 0.1 ? "%.2f ms" : "%.1f ms", seconds * 1e3);
}
std::string percent(double share) { return format("%+.2f %%", share * 100); }
std::string megabits(double bits_per_second) {
  return format("%.0f Mbit/s", bits_per_second * 1e-6);
}

double hold(Findings& findings, const std::string& what, double ours, double theirs, double most) {
  const double distance = ours / theirs - 1;
  if (!(std::abs(distance) <= most))
    findings.misses.push_back(what + ": " + percent(distance) + ", at most " +
                              format("%.0f %%", most * 100) + " is wanted");
  return distance;
}

void hold_bytes(Findings& findings, const std::string& what, const Bytes& ours,
                const Bytes& theirs) {
  Bytes all = theirs;
  for (const auto& [pair, bytes] : ours) all[pair] -= bytes;
  for (const auto& [pair, more] : all) {
    if (more == 0) continue;
    findings.misses.push_back(what + ": the real one has " + format("%+.0f", more) +
                              " bytes from " + std::to_string(pair.first) + " to " +
                              std::to_string(pair.second));
  }
}

}  // namespace ghostrank::fidelity
