#include "emulator/shard/ranks/carried.h"

#include <algorithm>

namespace ghostrank {
namespace {

EventState::Record end_of(const StreamState& s) { return {s.cause, s.now}; }

EventState::Record later(const EventState::Record& a, const EventState::Record& b) {
  return {b.when.at > a.when.at ? b.cause : a.cause, later(a.when, b.when)};
}

bool is_last(const RankState& r) { return r.iteration + 1 == r.stop_at; }

void begin_stream(RankState& r, std::size_t stream) {
  StreamState& s = r.streams[stream];
  s = {.at_once = workers(*r.program, stream), .now = later(s.now, r.carried->began)};
}

// Returns the most events of any program of the role, because all its programs share one layout of
// RankState::events.
std::size_t most_events(const Role& role) {
  std::size_t most = 0;
  for (const Program& program : role.iterations) most = std::max<std::size_t>(most, program.events);
  return most;
}

}  // namespace

void begin_carrying(RankState& r, Moment t, const Program* before, bool first) {
  if (first) {
    r.carried = std::make_unique<CarriedOver>();
    r.carried->first = r.iteration;
    r.streams.clear();
    r.events.clear();
    r.events.resize(kIterationsAlive * most_events(*r.role));
  }
  CarriedOver& c = *r.carried;
  c.before = before;
  c.began = t;
  c.caught_up = {};
  const auto each = static_cast<std::ptrdiff_t>(r.events.size() / kIterationsAlive);
  const auto events = r.events.begin() + r.iteration % kIterationsAlive * each;
  std::generate(events, events + each, [] { return EventState(); });
  const std::size_t had = r.streams.size();
  r.streams.resize(r.program->streams.size());
  r.streams_left = 0;
  for (std::size_t i = 0; i < r.streams.size(); ++i) {
    if (is_last(r) || !outlives(*r.program, i)) ++r.streams_left;
    StreamState& s = r.streams[i];
    s.behind = i < had && s.phase != StreamState::Phase::ended;
    s.behind ? static_cast<void>(++c.behind) : begin_stream(r, i);
  }
}

void catch_up(RankState& r, std::size_t stream) {
  CarriedOver& c = *r.carried;
  c.caught_up = later(c.caught_up, end_of(r.streams[stream]));
  --c.behind;
  begin_stream(r, stream);
}

EventState::Record end_of(const RankState& r) {
  EventState::Record end = end_of(r.streams[0]);
  if (r.carried) end = later(end, r.carried->caught_up);
  for (std::size_t i = 1; i < r.streams.size(); ++i)
    if (is_last(r) || !outlives(*r.program, i)) end = later(end, end_of(r.streams[i]));
  return end;
}

}  // namespace ghostrank
