#include "emulator/result/events_played.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ghostrank {
namespace {

constexpr std::array<std::string_view, 4> kKinds{"mark", "slow", "link", "kill"};  // by Kind

}  // namespace

void report_events(const JobEvents& events, Picoseconds lasted, bool real_time,
                   const std::set<Host>& missing, Result& result) {
  std::vector<double> begins{0};  // of iterations, and of the one that had not ended
  for (const IterationReport& one : result.iterations)
    begins.push_back(begins.back() + one.seconds);
  for (const JobEvent& event : events.all) {
    const bool by_iteration = event.iteration.has_value();
    const bool died = event.kind == JobEvent::Kind::kill && missing.contains(event.host) &&
                      seconds(event.at) * result.dilation < result.played_wall_seconds;
    const bool later =
        by_iteration ? *event.iteration >= result.iterations.size() : event.at >= lasted && !died;
    if (later) continue;
    const double at = by_iteration ? begins[*event.iteration]
                                   : static_cast<double>(event.at) / 1e12;  // 0.1 as it was written
    EventReport& out = result.events.emplace_back();
    out.at_s = at;
    if (real_time) out.wall_s = at * result.dilation;
    if (result.jobs.empty())
      out.iteration = by_iteration
                          ? static_cast<int>(*event.iteration)
                          : static_cast<int>(std::upper_bound(begins.begin(), begins.end(), at) -
                                             begins.begin()) -
                                1;
    out.kind = kKinds[static_cast<std::size_t>(event.kind)];
    out.what = event.what;
  }
  const std::size_t left = events.all.size() - result.events.size();
  std::stable_sort(result.events.begin(), result.events.end(),
                   [](const EventReport& a, const EventReport& b) { return a.at_s < b.at_s; });
  if (left > 0)
    result.notes.push_back("events: " + std::to_string(left) + " of " +
                           std::to_string(events.all.size()) +
                           " did not happen, because the run ended before");
}

}  // namespace ghostrank
