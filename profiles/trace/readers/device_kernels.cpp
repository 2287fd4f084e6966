#include "profiles/trace/readers/device_kernels.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "profiles/median.h"

namespace ghostrank {
namespace {

// The kernels of a stream so far, and whether any is a call.
struct Stream {
  std::vector<std::pair<Picoseconds, std::uint32_t>> ends;  // end, event; ordered by start
  bool calls = false;
  std::uint16_t track = 0;
  std::uint32_t step = 0;  // of the last one
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
  kernel.event.with_next = !kernel.also.empty();
  std::vector<std::uint32_t> ends{add_event(rank, kernel.event, after)};
  for (TraceEvent& call : kernel.also) {
    call.with_next = &call != &kernel.also.back();
    call.start = kernel.start;
    call.step = kernel.event.step;
    ends.push_back(add_event(rank, call, after));
  }
  if (ends.size() == 1) return ends.front();
  TraceEvent join;
  join.name = trace.name("end of a group");
  join.start = kernel.end;
  join.step = kernel.event.step;
  join.position = kernel.event.position;
  return add_event(rank, join, ends);
}

// When all kernels of the steps before `step` end. `ends`: by step, of those that have started.
Picoseconds end_before(std::uint32_t step, const std::vector<Picoseconds>& ends) {
  const auto before = ends.begin() + std::min<std::ptrdiff_t>(step, std::ssize(ends));
  return before == ends.begin() ? 0 : *std::max_element(ends.begin(), before);
}

// Indices of the kernels, by their starts.
// A device's number plus one is above the bits of its streams.
constexpr int kStreamBits = 32;
constexpr std::int64_t kMostStream = (std::int64_t{1} << kStreamBits) - 1;

std::string track_of(std::int64_t stream) {
  const std::int64_t device = stream >> kStreamBits;
  if (device <= 0) return "stream " + std::to_string(stream);
  return "device " + std::to_string(device - 1) + " stream " + std::to_string(stream & kMostStream);
}

std::vector<std::uint32_t> by_start(const std::vector<DeviceKernel>& kernels) {
  std::vector<std::uint32_t> order(kernels.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return kernels[a].start < kernels[b].start;
  });
  return order;
}

}  // namespace

std::int64_t stream_of_device(std::int64_t device, std::int64_t stream) {
  return (device + 1) << kStreamBits | (stream & kMostStream);
}

void add_kernels(std::vector<DeviceKernel>& kernels, Trace& trace, TraceRank& rank) {
  if (kernels.empty()) return;
  const std::vector<std::uint32_t> order = by_start(kernels);
  std::map<std::int64_t, Stream> streams;
  std::map<std::int64_t, const Stream*> calling;  // those with calls
  std::vector<Picoseconds> step_ends;             // by step, so far
  const Picoseconds origin = kernels[order.front()].start;
  for (const std::uint32_t index : order) {
    DeviceKernel& kernel = kernels[index];
    const auto [at, fresh] = streams.try_emplace(kernel.stream);
    Stream& own = at->second;
    if (fresh) own.track = track_named(rank, track_of(kernel.stream));
    const Picoseconds idle_from = own.ends.empty() ? origin : own.ends.back().first;
    Picoseconds ready = idle_from;
    const std::uint32_t step = kernel.event.step;
    if (fresh || step != own.step) ready = std::max(ready, end_before(step, step_ends));
    own.step = step;
    step_ends.resize(std::max<std::size_t>(step_ends.size(), step + 1));
    step_ends[step] = std::max(step_ends[step], kernel.end);
    std::vector<std::uint32_t> after;
    if (!own.ends.empty()) after.push_back(own.ends.back().second);
    const auto tie = [&](std::int64_t number, const Stream& other) {
      if (number != kernel.stream) add_tie(kernel, other, idle_from, after, ready);
    };
    if (kernel.call)
      for (const auto& [number, other] : streams) tie(number, other);
    else
      for (const auto& [number, other] : calling) tie(number, *other);
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
      idle.step = step;
      after = {add_event(rank, idle, after)};
    }
    own.ends.emplace_back(kernel.end, add_group(kernel, after, trace, rank));
    own.calls |= kernel.call;
    if (kernel.call) calling[kernel.stream] = &own;
  }
}

std::uint32_t put_into_steps(std::vector<DeviceKernel>& kernels,
                             const std::vector<std::int64_t>& launched,
                             const std::vector<std::int64_t>& begins) {
  std::uint32_t steps = 1, latest = 0;
  std::map<std::int64_t, std::uint32_t> last;  // by stream
  for (const std::uint32_t i : by_start(kernels)) {
    DeviceKernel& kernel = kernels[i];
    std::uint32_t& step = last.try_emplace(kernel.stream, latest).first->second;
    if (launched[i] >= 0) {
      const auto after = std::upper_bound(begins.begin(), begins.end(), launched[i]);
      step = static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(after - begins.begin(), 1) - 1);
    }
    kernel.event.step = latest = step;
    steps = std::max(steps, step + 1);
  }
  return steps;
}

std::string note_of_steps(std::uint32_t steps, const std::vector<std::int64_t>& nanos) {
  return "steps are marked, in the median " + std::to_string(median(nanos) / 1000) +
         " us long on the host; " + std::to_string(steps) +
         (steps == 1 ? " is" : " are, in their order,") +
         " an iteration each, and begin again when they are over; kernels are of the step in which "
         "the host launched them";
}

}  // namespace ghostrank
