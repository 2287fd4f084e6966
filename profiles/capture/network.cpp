// What the group's calls cost, from the spans in which some were under way: calls of one span share
// the network, so only the span as a whole has a duration of its own.
#include <algorithm>
#include <cmath>

#include "profiles/capture/merge.h"
#include "profiles/median.h"

namespace ghostrank {
namespace {

// All-reduces of a step that were under way together.
struct Span {
  std::uint64_t calls = 0, bytes = 0;
  Nanos begin = 0, end = 0;  // last launch of the first one, last end of all
  Nanos launched = 0;        // last launch of the last one
};

std::vector<Span> spans_of(std::vector<CaptureReduction> step) {
  std::sort(step.begin(), step.end(),
            [](const auto& a, const auto& b) { return a.launched < b.launched; });
  std::vector<Span> out;
  for (const CaptureReduction& call : step) {
    if (out.empty() || call.launched >= out.back().end)
      out.push_back({0, 0, call.launched, call.ended, call.launched});
    Span& span = out.back();
    ++span.calls;
    span.bytes += call.bytes;
    span.end = std::max(span.end, call.ended);
    span.launched = call.launched;
  }
  return out;
}

struct KindOfSpan {
  std::uint64_t calls = 0, bytes = 0;
  auto operator<=>(const KindOfSpan&) const = default;
};
using Durations = std::map<KindOfSpan, std::vector<Nanos>>;

Durations durations_of(const std::vector<std::vector<CaptureReduction>>& steps) {
  Durations out;
  for (const auto& step : steps)
    for (const Span& span : spans_of(step))
      out[{span.calls, span.bytes}].push_back(span.end - span.begin);
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
  std::vector<double> relative;  // durations, by that of a quick one
  double least = HUGE_VAL, most = 0;
  for (const auto& [kind, durations] : durations_of(reductions)) {
    const double seconds = static_cast<double>(quantile(durations, kQuick)) * 1e-9;
    if (seconds <= 0) continue;
    for (const Nanos one : durations) relative.push_back(static_cast<double>(one) * 1e-9 / seconds);
    const double weight = static_cast<double>(durations.size()) / (seconds * seconds),
                 calls = static_cast<double>(kind.calls), bytes = static_cast<double>(kind.bytes);
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

Nanos add_work_on_reductions(Captured& captured, const CallCost& cost) {
  std::vector<Nanos> added;
  for (auto& of_rank : captured.delays) {
    // Of long captures only the last steps have delays.
    const std::size_t first = captured.reductions.size() - of_rank.size();
    for (std::size_t s = 0; s < of_rank.size(); ++s) {
      const std::vector<Span> spans = spans_of(captured.reductions[first + s]);
      if (spans.empty()) continue;
      const Span& last = spans.back();
      const double seconds = static_cast<double>(last.calls) * cost.per_call +
                             static_cast<double>(last.bytes) * cost.per_byte;
      CaptureDelays& step = of_rank[s];
      const Nanos played = last.begin + static_cast<Nanos>(std::llround(1e9 * seconds));
      added.push_back(std::max<Nanos>(0, step.reduced - std::max(played, last.launched)));
      step.after += added.back();
    }
  }
  return median(std::move(added));
}

}  // namespace ghostrank
