// Messages between a slice and the rest of the cluster (scale.mode: slice): both in the play of the
// whole job, which records them, and in that of the slice, which neither sends nor receives them.
// See shard.h and emulator/slice/crossings.h.
//
//   leave_crossing    the message takes its turn at the sender's NIC and its time on the way. Of
//   the
//                     whole job: notes it, and it goes on as any other. Of the slice: it ends
//                     there, and an event stands for its coming to the outside
//   passed_outside    that event: says when the messages come that belong to it
//   comes_from_outside  such a message comes to its NIC, as it did when the whole job was played
#include <algorithm>
#include <limits>
#include <utility>

#include "emulator/shard/inline.h"

namespace ghostrank {
namespace {

constexpr std::uint32_t kOutsideTarget = kMostTargets - 1;
constexpr std::int32_t kNoneDepends = std::numeric_limits<std::int32_t>::max();

void make_passing(Event& e, std::uint32_t release) {
  e.sequence = release;
  e.flight = nullptr;
  e.held = kNil;
}

}  // namespace

// Whether a message between the two crosses the border of the slice.
bool Shard::crosses(const Location& from, const Location& to) const {
  if (recorder_) return recorder_->is_inside(from.node) != recorder_->is_inside(to.node);
  return !cluster_.plays(to.node);
}

OutwardConnection Shard::outward(const RankState& r, const Flight& f, const Route& route,
                                 const Leaving& m) {
  return {r.id(),    route.peer, f.group, f.sequence, m.kind == MessageKind::data ? m.actor : kNil,
          m.channel, m.kind};
}

void Shard::leave_crossing(RankState& r, Flight& f, Route& route, const Leaving& m) {
  const bool data = m.kind == MessageKind::data, ports = data && (rates_ || nic_.limited());
  const auto [source, target] = route.nics;
  Picoseconds latency = nic_.latency, duration = nic_.serialise(m.bytes);
  if (rates_) {
    latency = cluster_.topology().path_latency(source, target, 0);
    const Moment start = data ? later(m.ready, nics_[source].egress_free) : m.ready;
    duration = time_between(route.nics, latency, start.at, m.bytes);
  }
  Moment t = ports ? nics_[source].take_egress(m.ready, duration) : m.ready;
  t.at += duration + latency;
  if (!recorder_) return leave_slice(r, f, route, m, t);
  const Event::Kind kind = ports ? Event::Kind::ingress : Event::Kind::arrival;
  if (recorder_->is_inside(cluster_.location(r.party).node)) {
    if (route.flow < 0)
      route.flow = static_cast<std::int32_t>(recorder_->connection(outward(r, f, route, m)));
    t.slip = recorder_->left(static_cast<std::uint32_t>(route.flow), t.at);
  } else {
    Event e;
    m.describe(f, e);
    e.t = t;
    e.via = route.comes_in;
    e.set_kind(kind, m.kind);
    recorder_->comes(e, r.id(), route.target);
  }
  come_in(f, route, m, t, kind, nullptr);
}

// The message comes to the outside at `t`.
void Shard::leave_slice(const RankState& r, const Flight& f, Route& route, const Leaving& m,
                        const Moment& t) {
  if (route.flow < 0) {
    const std::uint32_t known = edge_.connection(outward(r, f, route, m));
    route.flow = known == kNil ? kNoneDepends : static_cast<std::int32_t>(known);
  }
  if (route.flow == kNoneDepends) return;
  const auto [first, end] = edge_.left(static_cast<std::uint32_t>(route.flow));
  for (std::uint32_t i = first; i < end; ++i) {
    const Crossings::Release& release = edge_.crossings().releases[i];
    if (release.host != host_) {
      tell_passed(i, t);
    } else if (release.shard == index_) {
      make_passing(schedule(Event::Kind::outside, t, kOutsideTarget), i);
    } else {
      Parcel p;
      p.event.t = t;
      p.event.rank = kOutsideTarget;
      p.event.set_kind(Event::Kind::outside, MessageKind::data);
      make_passing(p.event, i);
      hand_over(release.shard, std::move(p));
    }
  }
}

// Tells the process of a release that its message comes to the outside at `at`. Nothing may leave
// before the start.
void Shard::tell_passed(std::uint32_t release, const Moment& at) {
  const Crossings::Release& there = edge_.crossings().releases[release];
  const int flow = flow_to_[there.host.index() * static_cast<std::size_t>(cluster_.shards()) +
                            static_cast<std::size_t>(there.shard)];
  const WorldRank target = cluster_.ranks_of(there.host, there.shard).front();
  Parcel p{.message = {.header = {.nonce = nonce_,
                                  .sequence = release,
                                  .target = target.value(),
                                  .kind = MessageKind::passed,
                                  .number = segment_.number & 0xffff,
                                  .start = at.at,
                                  .slip_ns = to_ns(at.slip)}},
           .flow = flow,
           .nic = own_nic_.front()};
  const int outbox = cluster_.shards() + flow;
  if (now_ >= 0) return hand_over(outbox, std::move(p));
  outboxes_.add_turn(outbox, false);
  Event& e = schedule(Event::Kind::post, {}, 0);
  e.flight = nullptr;
  e.held = held_.put(std::move(p));
}

void Shard::passed_from_wire(const Header& h) {
  if (h.number != (segment_.number & 0xffff)) return;  // of an earlier segment
  const std::vector<Crossings::Release>& all = edge_.crossings().releases;
  if (h.sequence >= all.size() || all[h.sequence].host != host_ || all[h.sequence].shard != index_)
    return fail(
        "a message says that one has left the slice which leads to nothing here; do all "
        "processes run the same job?");
  const Picoseconds slip = static_cast<Picoseconds>(h.slip_ns) * kPicosPerNano;
  make_passing(schedule(Event::Kind::outside, {h.start, slip}, kOutsideTarget), h.sequence);
}

void Shard::passed_outside(const Event& e) {
  const Crossings& all = edge_.crossings();
  const Crossings::Release& release = all.releases[e.sequence];
  for (std::uint32_t i = release.first; i < release.end; ++i) {
    const Crossings::Released& one = all.released[i];
    know_arrival(one.arrival, {e.t.at + one.delay, e.t.slip});
  }
}

void Shard::know_arrival(std::uint32_t arrival, const Moment& at) {
  edge_.know(arrival, at, [this](std::uint32_t comes, const Moment& when) {
    comes_from_outside(edge_.crossings().arrivals[comes], when);
  });
}

void Shard::comes_from_outside(const Crossings::Arrival& arrival, const Moment& at) {
  const Crossings::Line& line = edge_.crossings().lines[arrival.line];
  if (line.ends) return outside_ended(arrival.event.sequence, at);
  Event e = arrival.event;
  e.t = at;
  e.rank = cluster_.location(line.target).local;
  if (e.message == MessageKind::data) stats_.from_outside += {e.bytes(), 1};
  schedule(e);
}

// The last rank outside ends an iteration at `end`.
void Shard::outside_ended(std::uint32_t iteration, const Moment& end) {
  add_to_iteration({.iteration = iteration, .ranks = 1, .end = end});
  if (--outside_ends_ == 0) one_ended();
}

// Before a segment: what belongs to no departure of the slice comes when it came.
void Shard::begin_slice() {
  edge_.begin(*shared_->crossings);
  flow_to_.clear();
  for (const Host host : each<Host>(cluster_.hosts()))
    for (int shard = 0; shard < cluster_.shards(); ++shard)
      flow_to_.push_back(flows_.between(host_, index_, host, shard));
  const Crossings& all = edge_.crossings();
  for (const std::uint32_t arrival : all.independent) {
    const Crossings::Arrival& one = all.arrivals[arrival];
    const Location& there = cluster_.location(all.lines[one.line].target);
    if (there.host == host_ && there.shard == index_) know_arrival(arrival, one.event.t);
  }
}

}  // namespace ghostrank
