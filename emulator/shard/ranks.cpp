// Streams and events: what a rank does next. See shard.h.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "emulator/shard/inline.h"
#include "emulator/shard/ranks/carried.h"
#include "emulator/shard/ranks/jitter.h"
#include "emulator/shard/ranks/slow_ranks.h"

namespace ghostrank {
namespace {

constexpr Picoseconds kLatest = std::numeric_limits<Picoseconds>::max() / 2;

// Whether streams of the rank besides the first can go on.
bool others_are_ready(const RankState& r) {
  return std::any_of(r.streams.begin() + 1, r.streams.end(),
                     [](const StreamState& s) { return s.phase == StreamState::Phase::ready; });
}

// Counts a wait of stream 0 from `from` to `until`. A stream that only computes is the host, which
// launches the device's kernels: a wait for it counts as compute, as does the part in which the
// other stream computed.
void count_wait(RankState& r, Picoseconds from, const EventState::Record& until) {
  const Picoseconds blocked = until.when.at - from;
  const Op::Kind kind = until.cause.kind();
  const bool passed_on = kind == Op::Kind::send || kind == Op::Kind::recv;
  const Picoseconds computed =
      kind == Op::Kind::compute ? blocked : std::min(blocked, until.cause.computed());
  r.compute += computed;
  (passed_on ? r.bubble : r.exposed) += blocked - computed;
}

// A storage node's rank only serves, and its times count nowhere.
bool trains(const Workload& workload, WorldRank rank) {
  return rank.value() < workload.ranks - workload.servers;
}

}  // namespace

void Shard::begin_iteration(RankState& r, Moment t) {
  const auto& programs = r.role->iterations;
  const auto wanted = segment_.program == kInOrder ? program_number(workload_, *r.role, r.iteration)
                                                   : static_cast<std::size_t>(segment_.program);
  const Program* const before =
      std::exchange(r.program, &programs[std::min(wanted, programs.size() - 1)]);
  r.began = t.at;
  r.compute = r.exposed = r.bubble = 0;
  if (carries_over(*r.program)) return begin_carrying(r, t, before, r.iteration == segment_.first);
  r.streams.assign(r.program->streams.size(), StreamState{.now = t});
  for (std::size_t s = 0; s < r.program->at_once.size(); ++s)
    r.streams[s].at_once = r.program->at_once[s];
  r.streams_left = static_cast<std::uint32_t>(r.streams.size());
  r.events.clear();
  r.events.resize(r.program->events);
}

void Shard::end_iteration(RankState& r) {
  const EventState::Record last = end_of(r);
  const Moment end = last.when;
  const Picoseconds done = r.streams[0].now.at;
  if (end.at > done && trains(workload_, r.id())) {  // stream 0 waits for others
    count_wait(r, done, last);
    trace(r, 0, {.kind = Op::Kind::wait}, 0, done, end.at);
  }
  const Picoseconds lasted = end.at - r.began;
  const std::uint16_t job = r.role->job;
  const WorldRank first = slice_ ? cluster_.first_played() : first_rank(workload_, job);
  if (recorder_ && !recorder_->is_inside(cluster_.location(r.party).node))
    recorder_->ended(r.iteration, end);
  add_to_iteration({r.iteration, 1, job, end, SummedTime::of(r.compute), SummedTime::of(r.exposed),
                    SummedTime::of(r.bubble), SummedTime::of(lasted), r.id() == first ? lasted : 0,
                    end.at});
  if (end.at > kLatest)
    fail("iteration " + std::to_string(r.iteration) +
         " ends more than 53 emulated days after the run began, beyond which times are not exact; "
         "play fewer iterations or a smaller job");
  tell_ops();
  if (++r.iteration == r.stop_at) return one_ended();
  begin_iteration(r, end);
}

void Shard::add_to_iteration(const IterationSums& one) {
  stats_.end = later(stats_.end, one.end);
  const IterationSums* whole = iterations_[one.job].add(one);
  if (!whole) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->finished.push_back(*whole);
  shared_->changed.notify_one();
}

// A rank has ended its last iteration.
void Shard::one_ended() {
  if (--ranks_left_ == 0 && shared_->ended.fetch_add(1) + 1 == shared_->shards && !links_.empty())
    for (Fabric* f : shared_->fabrics) f->wake();  // they stayed to play links for others
}

void Shard::tell_ops() {
  shared_->ops.fetch_add(std::exchange(ops_untold_, 0), std::memory_order_relaxed);
}

// Advances the rank's streams in turn, from `stream` on, until none can move, because the `record`
// of one may free another. `moved`: a stream has moved in this round. When a stream starts a
// flight, the flight's actors run first: advance() returns, and the ready queue holds the rank
// behind them.
void Shard::advance(RankState& r, std::size_t stream, bool moved) {
  while (r.iteration < r.stop_at) {
    for (const std::size_t streams = r.streams.size(); stream < streams; ++stream) {
      if (r.streams[stream].phase != StreamState::Phase::ready) continue;
      if (!advance_stream(r, static_cast<std::uint8_t>(stream))) return;
      moved = true;
    }
    if (r.streams_left == 0 && (!r.carried || r.carried->behind == 0)) {
      end_iteration(r);
      moved = true;
    }
    if (!moved) return;
    stream = 0;
    moved = false;
  }
}

// Returns whether the stream's collectives in flight let its next op (null: its end) start.
bool Shard::has_room(StreamState& s, const Op* next) const {
  if (s.at_once == 1) return s.busy_slots == 0 || (next && next->launch_index > 0);
  if (next && next->kind == Op::Kind::wait) return true;
  if (next && next->kind == Op::Kind::collective) return std::popcount(s.busy_slots) < s.at_once;
  if (s.busy_slots != 0) return false;
  s.now = later(s.now, s.ended);
  return true;
}

// Advances one stream as far as it can. Returns false when it started actors: the ready queue then
// holds the rank behind them.
bool Shard::advance_stream(RankState& r, std::uint8_t stream) {
  StreamState& s = r.streams[stream];
  const OpList& ops = program_of(r, s).streams[stream];
  while (s.pc < ops.size()) {
    const Op& op = ops[s.pc];
    if (op.kind == Op::Kind::wait && !passes_at_once(r, s, op)) {
      s.event = event_of(r, s, op);
      if (!r.events[s.event].fired()) {
        s.phase = StreamState::Phase::waiting;
        return true;
      }
    }
    if (!has_room(s, &op)) {
      s.phase = StreamState::Phase::busy;
      return true;
    }
    // Calls of this instant begin first where they prolong the compute.
    if (stream == 0 && op.kind == Op::Kind::compute && spec_.run.compute_slowdown > 0 &&
        others_are_ready(r))
      return true;
    if (communicates(op) && wait_for_clock(r, stream, &op)) return true;
    ++s.pc;
    if (++ops_untold_ == kOpsTold) tell_ops();
    const Started started = start_op(r, stream, op);
    if (started == Started::in_queue) return false;
    if (op.launch != 0 && op.launch_index + 1U == workload_.launches[op.launch - 1].size()) {
      start_launch(r, stream);
      return false;
    }
    if (started == Started::delayed) return true;
    if (started == Started::busy && s.busy_slots == 0) {
      s.phase = StreamState::Phase::busy;
      return true;
    }
  }
  if (!has_room(s, nullptr)) {
    s.phase = StreamState::Phase::busy;
    return true;
  }
  if (wait_for_clock(r, stream, nullptr)) return true;
  if (s.behind) {
    catch_up(r, stream);
    return advance_stream(r, stream);
  }
  s.phase = StreamState::Phase::ended;
  if (!outlives(*r.program, stream) || r.iteration + 1 == r.stop_at) --r.streams_left;
  return true;
}

// Lets a stream that has run ahead wait for the clock if others can notice what it does next, a
// call that leaves the node, or its end (null). Returns whether it waits.
bool Shard::wait_for_clock(RankState& r, std::uint8_t stream, const Op* next) {
  StreamState& s = r.streams[stream];
  if (!runs_ahead_ || s.now.at <= now_) return false;
  if (next) {
    const std::uint32_t group = cluster_.membership(r.id(), next->group).group;
    if (next->kind == Op::Kind::collective && next->launch == 0 && is_one_delay(group, *next))
      return false;
    if (is_at_lone_ports(r, *next)) return false;
  }
  const bool transfers = fluids_ && next && next->kind != Op::Kind::collective;
  delay(r, s, transfers ? pair_of(r, *next).ends : kNil);
  return true;
}

// Lets the stream go on when the clock reaches its time. `ends`: of the transfer that it goes on
// with, as in PairCounter.
void Shard::delay(const RankState& r, StreamState& s, std::uint32_t ends) {
  schedule(Event::Kind::delay_done, s.now, r.local).held = ends;
  s.phase = StreamState::Phase::delayed;
}

// Goes on with all streams of a rank whose delays end at `t` together: in the order of their
// numbers, whichever began first. None is left for the later ones of their events.
void Shard::end_delays(RankState& r, Picoseconds t) {
  bool any = false;
  for (StreamState& s : r.streams) {
    if (s.phase != StreamState::Phase::delayed || s.now.at != t) continue;
    s.phase = StreamState::Phase::ready;
    any = true;
  }
  if (any) advance(r);
}

// Starts an op at s.now. Started::ended: s.now is the op's end.
Shard::Started Shard::start_op(RankState& r, std::uint8_t stream, const Op& op) {
  StreamState& s = r.streams[stream];
  switch (op.kind) {
    case Op::Kind::compute: {
      const Picoseconds d = time_of(r, stream, op);
      if (stream == 0) r.compute += d;
      trace(r, stream, op, s.pc - 1, s.now.at, s.now.at + d);
      s.cause.add(d);
      s.now.at = after(s.now.at, d);
      if (is_beyond_clock(s.now.at)) [[unlikely]]
        s.now.at = end_of_clock();
      if (d == 0 || runs_ahead_) return Started::ended;
      delay(r, s);
      return Started::delayed;
    }
    case Op::Kind::collective:
    case Op::Kind::send:
    case Op::Kind::recv:
      return start_flight(r, stream, op);
    case Op::Kind::record: {
      const std::uint32_t event = event_of(r, s, op);
      r.events[event].record(s.cause, s.now);
      for (StreamState& other : r.streams) {
        if (other.phase == StreamState::Phase::waiting && other.event == event)
          other.phase = StreamState::Phase::ready;
      }
      return Started::ended;
    }
    case Op::Kind::wait: {
      if (passes_at_once(r, s, op)) return Started::ended;
      const EventState::Record e = r.events[s.event].take();
      const Moment until = later(s.now, e.when);
      if (stream == 0 && until.at > s.now.at) {
        count_wait(r, s.now.at, e);
        trace(r, stream, op, s.pc - 1, s.now.at, until.at);
      }
      if (until.at > std::max(s.now.at, s.ended.at)) s.cause = e.cause;
      s.now = until;
      return Started::ended;
    }
  }
  return Started::ended;
}

// Returns how long a compute takes that the stream begins now: with jitter, lengthened by events
// that make the rank slow and, on stream 0, while communication is in flight, because its kernels
// take part of the GPU.
Picoseconds Shard::time_of(const RankState& r, std::uint8_t stream, const Op& op) const {
  Picoseconds duration = with_jitter(r, stream, op);
  const StreamState& s = r.streams[stream];
  if (slow_ranks_ && segment_.measured && !op.pace)
    duration = slow_ranks_->slowed(r.id(), segment_.at + s.now.at,
                                   iteration_of(r, s) - segment_.measured_from, duration);
  if (spec_.run.compute_slowdown <= 0 || stream != 0 || r.flights.empty()) return duration;
  return duration + std::llround(spec_.run.compute_slowdown * static_cast<double>(duration));
}

Picoseconds Shard::with_jitter(const RankState& r, std::uint8_t stream, const Op& op) const {
  if (spec_.run.jitter <= 0 || op.pace) return op.duration;
  const double factor =
      jitter_factor(spec_.run.seed, r.party.index(), iteration_of(r, r.streams[stream]), stream,
                    r.streams[stream].pc, spec_.run.jitter);
  return std::llround(static_cast<double>(op.duration) * factor);
}

// `at`: the op's position in the stream.
void Shard::trace(const RankState& r, std::uint8_t stream, const Op& op, std::uint32_t at,
                  Picoseconds start, Picoseconds end, std::uint8_t slot) {
  if (!r.traced || end <= start) return;
  Span* const added = spans_.add();
  if (!added) return;
  Span& span = *added;
  span.rank = r.id();
  span.host = host_;
  span.stream = stream;
  span.slot = slot;
  span.start = start;
  span.duration = end - start;
  const bool transfer = op.kind == Op::Kind::send || op.kind == Op::Kind::recv;
  span.kind = op.kind == Op::Kind::compute      ? 0
              : op.kind == Op::Kind::collective ? 1
              : transfer                        ? 2
                                                : 3;
  span.label =
      op.kind == Op::Kind::wait ? "wait" : label_of(program_of(r, r.streams[stream]), stream, at);
  if (span.kind == 1 || span.kind == 2)
    span.bytes = elements_of(workload_, op) * bytes_of(op.dtype);
}

}  // namespace ghostrank
