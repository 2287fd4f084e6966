// Streams and events: what a rank does next. See shard.h.
#include <bit>
#include <cmath>

#include "emulator/assert.h"
#include "emulator/carried.h"
#include "emulator/jitter.h"
#include "emulator/shard.h"

namespace ghostrank {

void Shard::begin_iteration(RankState& r, Moment t) {
  const auto& programs = r.role->iterations;
  const auto wanted = segment_.program == kInOrder ? program_number(workload_, r.iteration)
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
  r.events.assign(r.program->events, EventState{});
}

void Shard::end_iteration(RankState& r) {
  const auto [own, end] = end_of(r);
  if (end.at > own.at) {  // it waited for what the iteration before had carried over
    r.exposed += end.at - own.at;
    trace(r, 0, {.kind = Op::Kind::wait}, own.at, end.at);
  }
  const Picoseconds lasted = end.at - r.began;
  IterationPart& part = open_[r.iteration - segment_.first];
  part.merge({r.iteration, 1, end, r.compute, r.exposed, r.bubble, lasted, r.id == 0 ? lasted : 0,
              end.at});
  stats_.end = later(stats_.end, end);
  shared_->steps.fetch_add(1, std::memory_order_relaxed);
  if (part.ranks == players_) {
    const std::lock_guard lock(shared_->mutex);
    shared_->parts.push_back(part);
    shared_->changed.notify_one();
  }
  if (++r.iteration == r.stop_at) {
    if (--ranks_left_ == 0) shared_->ended.fetch_add(1);
    return;
  }
  begin_iteration(r, end);
}

// Goes round the streams until none can move: one stream's `record` may free another.
void Shard::advance(RankState& r) {
  if (r.advancing) return;  // called from within, through a collective that ended at once
  r.advancing = true;
  for (bool moved = true; moved && r.iteration < r.stop_at;) {
    moved = false;
    for (std::size_t s = 0; s < r.streams.size(); ++s) {
      if (r.streams[s].phase != StreamState::Phase::ready) continue;
      advance_stream(r, static_cast<std::uint8_t>(s));
      moved = true;
    }
    if (r.streams_left == 0 && (!r.carried || r.carried->behind == 0)) {
      end_iteration(r);
      moved = true;
    }
  }
  r.advancing = false;
}

// Whether a stream's collectives in flight let its next op (null: its end) start.
bool Shard::has_room(StreamState& s, const Op* next) const {
  if (s.at_once == 1 || (next && next->kind == Op::Kind::wait)) return true;
  if (next && next->kind == Op::Kind::collective) return std::popcount(s.lanes) < s.at_once;
  if (s.lanes != 0) return false;
  s.now = later(s.now, s.ended);
  return true;
}

void Shard::advance_stream(RankState& r, std::uint8_t stream) {
  StreamState& s = r.streams[stream];
  const OpList& ops = program_of(r, s).streams[stream];
  while (s.pc < ops.size()) {
    const Op& op = ops[s.pc];
    if (op.kind == Op::Kind::wait && !passes_at_once(r, s, op)) {
      s.event = event_of(r, s, op);
      if (!r.events[s.event].fired) {
        s.phase = StreamState::Phase::waiting;
        return;
      }
    }
    if (!has_room(s, &op)) {
      s.phase = StreamState::Phase::busy;
      return;
    }
    ++s.pc;
    if (!start_op(r, stream, op) && s.lanes == 0) {
      s.phase = StreamState::Phase::busy;
      return;
    }
    if (op.kind != Op::Kind::record && op.kind != Op::Kind::wait) s.last = op.kind;
  }
  if (!has_room(s, nullptr)) {
    s.phase = StreamState::Phase::busy;
    return;
  }
  if (s.behind) {
    catch_up(r, stream);
    return advance_stream(r, stream);
  }
  s.phase = StreamState::Phase::ended;
  if (!outlives(*r.program, stream) || r.iteration + 1 == r.stop_at) --r.streams_left;
}

// Starts an op at s.now; true when it has ended already (s.now is then its end).
bool Shard::start_op(RankState& r, std::uint8_t stream, const Op& op) {
  StreamState& s = r.streams[stream];
  switch (op.kind) {
    case Op::Kind::compute: {
      const Picoseconds d = slowed(r, stream, with_jitter(r, stream, op));
      if (stream == 0) r.compute += d;
      trace(r, stream, op, s.now.at, s.now.at + d);
      s.last = op.kind;
      if (d == 0) return true;
      const Moment end{s.now.at + d, s.now.slip};
      schedule(Event::Kind::compute_done, end, r.local).via = stream;
      return false;
    }
    case Op::Kind::collective:
    case Op::Kind::send:
    case Op::Kind::recv:
      s.last = op.kind;
      return start_flight(r, stream, op);
    case Op::Kind::record: {
      const std::uint32_t event = event_of(r, s, op);
      GHOSTRANK_ASSERT(!r.events[event].fired);  // one wait per record
      r.events[event] = {true, s.last, s.now};
      for (StreamState& other : r.streams) {
        if (other.phase == StreamState::Phase::waiting && other.event == event)
          other.phase = StreamState::Phase::ready;
      }
      return true;
    }
    case Op::Kind::wait: {
      if (passes_at_once(r, s, op)) return true;
      EventState& e = r.events[s.event];
      e.fired = false;
      const Moment until = later(s.now, e.when);
      const Picoseconds blocked = until.at - s.now.at;
      if (stream == 0 && blocked > 0) {
        (e.cause == Op::Kind::send || e.cause == Op::Kind::recv ? r.bubble : r.exposed) += blocked;
        trace(r, stream, op, s.now.at, until.at);
      }
      s.now = until;
      return true;
    }
  }
  return true;
}

// A communication kernel that runs beside the products takes some of the GPU.
Picoseconds Shard::slowed(const RankState& r, std::uint8_t stream, Picoseconds duration) const {
  if (spec_.run.compute_slowdown <= 0 || stream != 0 || r.flights.empty()) return duration;
  return duration + std::llround(spec_.run.compute_slowdown * static_cast<double>(duration));
}

Picoseconds Shard::with_jitter(const RankState& r, std::uint8_t stream, const Op& op) const {
  if (spec_.run.jitter <= 0) return op.duration;
  const double factor = jitter_factor(spec_.run.seed, static_cast<std::uint64_t>(r.id),
                                      iteration_of(r, r.streams[stream]), stream,
                                      r.streams[stream].pc, spec_.run.jitter);
  return std::llround(static_cast<double>(op.duration) * factor);
}

void Shard::trace(const RankState& r, std::uint8_t stream, const Op& op, Picoseconds start,
                  Picoseconds end, std::uint8_t lane) {
  if (!r.traced || end <= start) return;
  if (spans_.size() >= max_spans_) {
    ++stats_.spans_dropped;
    return;
  }
  Span span;
  span.rank = r.id;
  span.host = host_;
  span.stream = stream;
  span.lane = lane;
  span.start = start;
  span.duration = end - start;
  const bool transfer = op.kind == Op::Kind::send || op.kind == Op::Kind::recv;
  span.kind = op.kind == Op::Kind::compute      ? 0
              : op.kind == Op::Kind::collective ? 1
              : transfer                        ? 2
                                                : 3;
  span.label =
      op.kind == Op::Kind::wait ? "wait" : program_of(r, r.streams[stream]).labels[op.label];
  if (span.kind == 1 || span.kind == 2)
    span.bytes = elements_of(workload_, op) * bytes_of(op.dtype);
  spans_.push_back(std::move(span));
}

}  // namespace ghostrank
