#include "profiles/trace/readers/device_kernels.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ghostrank {
namespace {

// The kernels of a stream so far, and whether any is a call.
struct Stream {
  std::vector<std::pair<Picoseconds, std::uint32_t>> ends;  // end, event; ordered by start
  bool calls = false;
  std::uint16_t track = 0;
};

// Adds the last kernel of another stream that had ended when this kernel began, if this kernel
// waited for it.
void add_tie(const DeviceKernel& kernel, const Stream& other, Picoseconds idle_from,
             std::vector<std::uint32_t>& after, Picoseconds& ready) {
  auto at = other.ends.rbegin();
  while (at != other.ends.rend() && at->first > kernel.start) ++at;
  if (at == other.ends.rend()) return;
  const bool waited = kernel.call || (other.calls && at->first > idle_from);
  if (!waited) return;
  after.push_back(at->second);
  ready = std::max(ready, at->first);
}

// Adds the calls of one kernel, which start together; returns the event at their end.
std::uint32_t add_group(DeviceKernel& kernel, const std::vector<std::uint32_t>& after, Trace& trace,
                        TraceRank& rank) {
  std::vector<std::uint32_t> ends{add_event(rank, kernel.event, after)};
  for (TraceEvent& call : kernel.also) {
    call.start = kernel.start;
    ends.push_back(add_event(rank, call, after));
  }
  if (ends.size() == 1) return ends.front();
  TraceEvent join;
  join.name = trace.name("end of a group");
  join.start = kernel.end;
  join.position = kernel.event.position;
  return add_event(rank, join, ends);
}

}  // namespace

void add_kernels(std::vector<DeviceKernel>& kernels, std::string (*track)(std::int64_t stream),
                 Trace& trace, TraceRank& rank) {
  if (kernels.empty()) return;
  std::vector<std::uint32_t> order(kernels.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return kernels[a].start < kernels[b].start;
  });
  std::map<std::int64_t, Stream> streams;
  const Picoseconds origin = kernels[order.front()].start;
  for (const std::uint32_t index : order) {
    DeviceKernel& kernel = kernels[index];
    const auto [at, fresh] = streams.try_emplace(kernel.stream);
    Stream& own = at->second;
    if (fresh) own.track = track_named(rank, track(kernel.stream));
    const Picoseconds idle_from = own.ends.empty() ? origin : own.ends.back().first;
    Picoseconds ready = idle_from;
    std::vector<std::uint32_t> after;
    if (!own.ends.empty()) after.push_back(own.ends.back().second);
    for (const auto& [number, other] : streams)
      if (number != kernel.stream) add_tie(kernel, other, idle_from, after, ready);
    kernel.event.track = own.track;
    kernel.event.start = kernel.start;
    if (!kernel.call && kernel.start > ready) {
      TraceEvent idle;
      idle.kind = TraceEvent::Kind::compute;
      idle.counted = false;
      idle.track = own.track;
      idle.start = ready;
      idle.duration = kernel.start - ready;
      idle.name = trace.name("idle");
      idle.position = kernel.event.position;
      after = {add_event(rank, idle, after)};
    }
    own.ends.emplace_back(kernel.end, add_group(kernel, after, trace, rank));
    own.calls |= kernel.call;
  }
}

}  // namespace ghostrank
