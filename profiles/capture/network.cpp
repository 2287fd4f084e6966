// What the group's calls cost, from the spans in which some were under way: calls of one span share
// the network, so only the span as a whole has a duration of its own.
#include <algorithm>
#include <cmath>

#include "profiles/capture/merge.h"
#include "profiles/median.h"

namespace ghostrank {
namespace {

struct Span {
  std::uint64_t calls = 0, bytes = 0;
  auto operator<=>(const Span&) const = default;
};

// Durations of the spans of all steps, by their number of calls and of bytes.
std::map<Span, std::vector<Nanos>> spans_of(
    const std::vector<std::vector<CaptureReduction>>& steps) {
  std::map<Span, std::vector<Nanos>> out;
  for (auto calls : steps) {
    std::sort(calls.begin(), calls.end(),
              [](const auto& a, const auto& b) { return a.launched < b.launched; });
    for (std::size_t i = 0; i < calls.size();) {
      const Nanos begin = calls[i].launched;
      Nanos end = calls[i].ended;
      Span span;
      for (; i < calls.size() && (span.calls == 0 || calls[i].launched < end); ++i) {
        ++span.calls;
        span.bytes += calls[i].bytes;
        end = std::max(end, calls[i].ended);
      }
      out[span].push_back(end - begin);
    }
  }
  return out;
}

// Sums of least squares over spans, each weighted by how often it was seen and by its duration:
// relative errors count.
struct Sums {
  double cc = 0, cb = 0, bb = 0, ct = 0, bt = 0;
};

}  // namespace

CallCost call_cost(const std::vector<std::vector<CaptureReduction>>& reductions) {
  constexpr double kSpread = 2;  // most over least bytes per call, needed to tell the costs apart
  constexpr double kSignificant = 2;  // standard errors
  Sums sums;
  std::vector<double> relative;  // durations, by the median of their span
  double least = HUGE_VAL, most = 0;
  for (const auto& [span, durations] : spans_of(reductions)) {
    const double seconds = static_cast<double>(median(durations)) * 1e-9;
    if (seconds <= 0) continue;
    for (const Nanos one : durations) relative.push_back(static_cast<double>(one) * 1e-9 / seconds);
    const double weight = static_cast<double>(durations.size()) / (seconds * seconds),
                 calls = static_cast<double>(span.calls), bytes = static_cast<double>(span.bytes);
    sums.cc += weight * calls * calls;
    sums.cb += weight * calls * bytes;
    sums.bb += weight * bytes * bytes;
    sums.ct += weight * calls * seconds;
    sums.bt += weight * bytes * seconds;
    least = std::min(least, bytes / calls);
    most = std::max(most, bytes / calls);
  }
  CallCost out;
  if (sums.bb <= 0) return out;
  const double determinant = sums.cc * sums.bb - sums.cb * sums.cb;
  out.per_call_known = most >= kSpread * least && determinant > 0;
  if (out.per_call_known) {
    out.per_call = (sums.ct * sums.bb - sums.bt * sums.cb) / determinant;
    out.per_byte = (sums.bt * sums.cc - sums.ct * sums.cb) / determinant;
    const double error = median_error(relative, 1) * std::sqrt(sums.bb / determinant);
    out.per_call_known = out.per_call > kSignificant * error && out.per_byte > 0;
  }
  if (!out.per_call_known) {
    out.per_call = 0;
    out.per_byte = sums.bt / sums.bb;
  }
  return out;
}

}  // namespace ghostrank
