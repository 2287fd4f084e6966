// Functions of the shard's hot path that several of its files call; see GHOSTRANK_ON_THE_WAY in
// shard.h. Only shard/*.cpp include it.
#pragma once

#include <algorithm>
#include <utility>

#include "emulator/shard/shard.h"
#include "profiles/job/nic_rates.h"
#include "switch/assert.h"

namespace ghostrank {

// Most events that may be pending, asserted.
inline constexpr std::size_t kMaxPendingEvents = 1u << 27;

inline Picoseconds after(Picoseconds t, Picoseconds later) {
  return t < Windows::kNever - later ? t + later : Windows::kNever;
}

// Whether a time, or a sum of times that no longer fits, is not on the clock of a run.
inline bool is_beyond_clock(Picoseconds t) {
  constexpr auto end = static_cast<std::uint64_t>(kClockEnd);
  return static_cast<std::uint64_t>(t) + end > 2 * end;
}

// Returns the slot of a new event in the queue. The slot holds old values: the caller sets every
// other field that events of this kind use.
Event& Shard::schedule(Event::Kind kind, Moment t, std::uint32_t rank, MessageKind message) {
  GHOSTRANK_ASSERT(timers_.size() < kMaxPendingEvents);
  if (is_beyond_clock(t.at)) [[unlikely]]
    t.at = end_of_clock();
  Event& e =
      kind == Event::Kind::delay_done ? timers_.push_far(t.at, rank) : timers_.push(t.at, rank);
  e.t.slip = t.slip;
  e.set_kind(kind, message);
  return e;
}

// Returns the slot of a note's new event; its other fields hold old values.
Event& Shard::schedule_from(std::size_t source, Event::Kind kind, const Moment& t,
                            std::uint32_t rank) {
  GHOSTRANK_ASSERT(timers_.size() < kMaxPendingEvents);
  const Picoseconds at = is_beyond_clock(t.at) ? end_of_clock() : t.at;
  Event& e = timers_.push_from(static_cast<std::uint32_t>(source), at, rank);
  e.t.slip = t.slip;
  e.set_kind(kind, MessageKind::note);
  return e;
}

// Returns how long a message takes at a NIC that it enters at `start`.
Picoseconds Shard::time_at_nic(Nic nic, Picoseconds start, std::uint64_t bytes) const {
  const LinkSpeed& speed = cluster_.topology().nic(nic);
  const RateCurve* curve = rates_ ? rates_->of(nic) : nullptr;
  if (!curve) return speed.serialise(bytes);
  return curve->duration(segment_.at + start, static_cast<double>(speed.on_wire(bytes)));
}

// Returns how long a message takes from one NIC, which it enters at `start`, to another.
inline Picoseconds Shard::time_between(const NicPair& nics, Picoseconds latency, Picoseconds start,
                                       std::uint64_t bytes) const {
  return SlowerRate(rate_of(nics.source), rate_of(nics.target), latency)
      .duration(segment_.at + start, static_cast<double>(nic_.on_wire(bytes)));
}

// Returns a message that came through the fabric, without its target: at its real arrival, but no
// earlier than `floor`, when its bytes could have passed the NICs at their rate. The part of a
// later arrival that the hosts (not the network) caused is slip.
inline Event event_from_wire(const Header& h, Picoseconds floor, Picoseconds now,
                             Picoseconds poll_lag) {
  Event e;
  e.t = {floor, static_cast<Picoseconds>(h.slip_ns) * kPicosPerNano};
  if (now > floor) {
    const Picoseconds ours = static_cast<Picoseconds>(h.late_ns) * kPicosPerNano + poll_lag;
    e.t = {now, e.t.slip + std::min(now - floor, ours)};
  }
  e.set_size(h.bytes, h.number);
  e.group = h.group;
  e.sequence = h.sequence;
  e.source = h.source;
  e.actor = h.actor;
  e.channel = h.channel;
  e.message = h.kind;
  return e;
}

// Returns the flight that a message is for, at its target on this shard; null: it has not begun.
inline Flight* Shard::flight_at_target(Route& route, const Event& e) {
  if (!route.flight) route.flight = ranks_[route.rank].flights.find(e);
  return route.flight;
}

// Schedules the event of a message whose last byte comes to the receiver's NIC or GPU at `t`.
void Shard::come_in(Flight& f, Route& route, const Leaving& m, const Moment& t, Event::Kind kind,
                    Payload* content) {
  if (route.shard != index_) {
    Parcel p;
    if (content) p.message.payload = std::move(*content);
    m.describe(f, p.event);
    p.event.t = t;
    p.event.rank = route.rank;
    p.event.via = route.comes_in;
    p.event.set_kind(kind, m.kind);
    p.event.flight = m.kind == MessageKind::credit ? nullptr : &f;
    return hand_over(route.shard, std::move(p));
  }
  Event& e = schedule(kind, t, route.rank, m.kind);
  m.describe(f, e);
  e.via = route.comes_in;
  if (content) e.held = held_.put(Parcel{.message = {{}, std::move(*content)}});
  e.flight = flight_at_target(route, e);
}

// Prefetches a rank's own lines, and its counts of collectives.
void Shard::fetch_rank(std::uint32_t local) const {
  const auto* const rank = reinterpret_cast<const char*>(&ranks_[local]);
  for (std::size_t line = 0; line < sizeof(RankState); line += 64) __builtin_prefetch(rank + line);
  __builtin_prefetch(&sequences_[local * workload_.group_names.size()]);
}

// Runs the ready queue until it is empty.
void Shard::go_on() {
  while (!ready_.empty()) go_on_with(ready_.pop());
}

void Shard::run_actor(RankState& r, Flight& f, ActorState& a) {
  if (!walk_actor(r, f, a)) return;
  settle(f, a.route);
  f.end = later(f.end, a.ready);
  if (f.op->launch != 0) [[unlikely]]
    pass_turn(r, f, a);
  if (--f.actors_left > 0) return;
  finish_flight(r, f);
  ready_.push_rank(r.local);
}

void Shard::send_slice(RankState& r, Flight& f, ActorState& a, GroupRank peer, const Block& slice) {
  if (a.route.peer != peer) find_route(r, f, a.channel, peer, false, a.route);
  const std::uint32_t element = f.schedule->collective().element_bytes;
  const std::uint64_t bytes = message_bytes(f.schedule->protocol(), slice.count, element);
  ++stats_.messages;
  a.route.sent.bytes += bytes;
  ++a.route.sent.messages;
  const Leaving m{MessageKind::data, a.route.number++, f.index_of(a), a.channel, bytes, a.ready};
  if (segment_.verify && slice.count > 0) [[unlikely]]
    return leave_with_content(r, f, a, m, slice);
  leave(r, f, a.route, m);
}

}  // namespace ghostrank
