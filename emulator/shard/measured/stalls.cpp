#include "emulator/shard/measured/stalls.h"

#include <algorithm>

#include "emulator/fabric/fabric.h"
#include "emulator/network/port.h"

namespace ghostrank {
namespace {

constexpr double kLeastSeconds = 1;  // wall time
constexpr Picoseconds kTimesExpected = 10;

std::vector<Gap> common_to_two(const std::vector<Gap>& a, const std::vector<Gap>& b) {
  std::vector<Gap> common;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Gap both{std::max(a[i].from, b[j].from), std::min(a[i].to, b[j].to)};
    if (both.from < both.to) common.push_back(both);
    a[i].to < b[j].to ? ++i : ++j;
  }
  return common;
}

}  // namespace

Picoseconds stall_threshold(const JobSpec& spec, double dilation) {
  const NicSpec& nic = spec.cluster.nic;
  const Picoseconds piece =
      LinkSpeed::from_rate(nic.rate_bps, nic.latency).serialise(kFragmentBytes) + nic.latency;
  const auto emulated = [&](double wall_seconds) {
    return static_cast<Picoseconds>(wall_seconds * 1e12 / dilation);
  };
  const Picoseconds threshold = std::max(emulated(kLeastSeconds), kTimesExpected * piece);
  return std::min(threshold, emulated(spec.run.stall_timeout_s / 2));
}

std::chrono::milliseconds silence_of_the_lost(const RunSpec& run) {
  constexpr double kLongest = 20, kAfterTheStall = 2;
  const double seconds = std::min(kLongest, run.stall_timeout_s + kAfterTheStall);
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

std::vector<Gap> common_gaps(const std::vector<std::vector<Gap>>& shards, Picoseconds threshold) {
  std::vector<Gap> common{Gap{0, kEndless}};
  for (const std::vector<Gap>& gaps : shards) common = common_to_two(common, gaps);
  // An endless gap is the end of a shard, not a stall.
  std::erase_if(common,
                [&](const Gap& g) { return g.to == kEndless || g.to - g.from <= threshold; });
  return common;
}

std::string Pulse::to_blob() const {
  BlobWriter w;
  w.put(segment), w.put(quiet), w.put(ended), w.put(since), w.put(stuck);
  return w.bytes();
}

bool Pulse::read(BlobReader& r) {
  r.get(segment), r.get(quiet), r.get(ended), r.get(since), r.get(stuck);
  return r.complete();
}

void StallWatch::note(Host host, const Pulse& pulse, Picoseconds now) {
  if (pulse.segment != segment_) return;  // a late one, of an earlier segment
  hosts_[host] = {pulse, now};
}

bool StallWatch::all_ended() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const Seen& s) { return s.pulse.ended; });
}

std::optional<Picoseconds> StallWatch::quiet_since(Picoseconds now) const {
  Picoseconds since = 0;
  for (const Seen& seen : hosts_) {
    if (!seen.pulse.quiet && !silent(seen, now)) return std::nullopt;
    since = std::max(since, seen.pulse.quiet ? seen.pulse.since : seen.heard);
  }
  return since;
}

std::string StallWatch::who_is_stuck(Picoseconds now) const {
  std::string text;
  for (const Host h : hosts_.keys()) {
    const Seen& seen = hosts_[h];
    if (silent(seen, now))
      text += (text.empty() ? "" : "; ") + std::string("host ") + to_string(h) +
              " is not heard of: it is stopped or cannot be reached";
    else if (!seen.pulse.stuck.empty())
      text += (text.empty() ? "" : "; ") + seen.pulse.stuck;
  }
  return text.empty() ? "no rank waits for anything" : text;
}

}  // namespace ghostrank
