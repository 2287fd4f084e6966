// How messages cross links between switches. Each link is an event at the shard that plays the
// link, at the time when the message's first byte arrives there. See shard.h and network/links.h.
//
//   sender's NIC ──> link ──> link ──> landing ──> target's NIC, as without links
//
// A message on its way is a parcel; the shard of its next link holds it, and the event there is the
// link's. Links are targets of events as ranks are, with the highest numbers. Messages that come to
// a link at the same time pass by sender, then in the order in which their sender sent them.
#include <algorithm>

#include "emulator/network/link_rates.h"
#include "emulator/shard/inline.h"
#include "emulator/shard/on_the_way/packet_connections.h"

namespace ghostrank {
namespace {

std::uint32_t target_of_link(std::uint32_t link) { return kMostTargets - 1 - link; }

// The latency of a hop before a link on a path with `links` links. Copies of a note reach a link
// that they share at one time, wherever they go: each hop takes the share of the longest path.
Picoseconds stretch_of(const Topology& topology, Nic from, Nic to, int links, bool copied) {
  return topology.stretch(from, to, copied ? topology.routes().longest() : links);
}

}  // namespace

// Returns a number that names the next message, of whatever kind, that a party of this shard sends
// over links.
std::uint64_t Shard::next_on_links(std::uint32_t local) {
  return std::uint64_t{ranks_[local].party.index()} << 36 | ++sent_on_links_[local];
}

// Returns the connection as the routing and InOrder know it, the same at both ends.
RoutedConnection Shard::connection_of(const Event& e, WorldParty target) const {
  const bool note = e.message == MessageKind::note;
  return {note ? e.group | kSchemeFlows : e.group,
          note ? std::uint16_t{0} : static_cast<std::uint16_t>(e.channel), sender_of(e), target};
}

// Returns the number by which the routing chooses a path for message `message` of a connection,
// sent from `start` to `end`.
std::uint64_t Shard::number_for_routing(const RoutedConnection& connection, std::uint64_t message,
                                        Picoseconds start, Picoseconds end) {
  switch (cluster_.topology().routes_per()) {
    case Routing::Per::connection:
      return 0;
    case Routing::Per::flowlet:
      return flowlets_.number(connection, start, end);
    case Routing::Per::message:
      return message;
  }
  return 0;
}

// Makes a route inside the process cross links where its NICs have links between them, or go as
// packets. Chooses the path here, once, where the routing chooses for connections. A credit takes
// no path, but the number of links counts for its latency, too.
void Shard::find_path(const RankState& r, const Flight& f, int channel, MessageKind kind,
                      Route& route) const {
  const Topology& topology = cluster_.topology();
  const std::uint32_t paths = topology.paths(route.nics.source, route.nics.target);
  const bool pairs = topology.queue_pairs().several();
  if (by_packets_) {
    route.hop = Route::Hop::packets;
    if (pairs || (paths > 0 && !topology.one_path())) return;
    const RoutedConnection connection{f.group, static_cast<std::uint16_t>(channel), r.party,
                                      route.target};
    const std::uint32_t path =
        paths == 0 ? 0 : topology.choose(connection, route.nics.source, route.nics.target);
    route.flow = static_cast<std::int32_t>(
        by_packets_->of(connection, route.nics.source, route.nics.target, path));
    return;
  }
  if (rates_)
    route.hop = Route::Hop::changing;
  else if (paths > 0)
    route.hop = Route::Hop::links;
  if (paths == 0) return;
  if (kind == MessageKind::credit) {
    route.flow = topology.hops(route.nics.source, route.nics.target);
    return;
  }
  if (pairs || !topology.one_path()) return;
  route.flow = static_cast<std::int32_t>(
      topology.choose_id({f.group, static_cast<std::uint16_t>(channel), r.party, route.target},
                         route.nics.source, route.nics.target));
}

// Sends a message that takes its NIC for `duration` from `start` on, over links.
void Shard::leave_by_links(RankState& r, Flight& f, Route& route, const Leaving& m,
                           const Moment& start, Picoseconds duration, Payload* content) {
  const Topology& topology = cluster_.topology();
  if (topology.queue_pairs().several())
    return leave_by_pairs(r, f, route, m, start, duration, content);
  OnLinks way{.number = next_on_links(r.local),
              .target = route.target,
              .from = route.nics.source,
              .progress = OnLinks::progress_of(static_cast<std::uint32_t>(route.flow))};
  std::uint32_t in_turn = 0;
  if (!topology.one_path()) {
    const RoutedConnection connection{f.group, m.channel, r.party, route.target};
    in_turn = in_turn_.number(connection);
    const std::uint64_t chosen_for =
        number_for_routing(connection, in_turn, start.at, start.at + duration);
    way.progress = OnLinks::progress_of(
        topology.choose_id(connection, route.nics.source, route.nics.target, chosen_for));
  }
  if (content || in_turn > 0)
    way.rest = held_.put(
        Parcel{.message = {{.late_ns = in_turn}, content ? std::move(*content) : Payload()}});
  Event e;
  m.describe(f, e);
  e.message = m.kind;
  e.rank = route.rank;
  e.via = route.comes_in;
  if (route.shard == index_) e.flight = flight_at_target(route, e);
  if (copy_payload_) copy_as_much(m.bytes);
  depart(e, way, start, duration, &f);
}

// Sends one copy of a note from its NIC over links. All copies have the same `tree`, so that they
// share links.
void Shard::note_by_links(const LeavingNote& note, NoteTree& tree, WorldParty party,
                          const Moment& start, Picoseconds duration) {
  const Topology& topology = cluster_.topology();
  const Nic from = cluster_.location(note.party).nic, to = cluster_.location(party).nic;
  const bool ordered =
      note.carriage == Carriage::reliable && (!topology.one_path() || may_overtake(from, to));
  RoutedConnection connection{note.sender.scheme | kSchemeFlows, 0, note.party, party};
  std::uint32_t number = ordered ? in_turn_.number(connection) : 0;
  if (tree.number == 0) {
    tree.number = next_on_links(note.sender.local);
    const std::uint64_t message = ordered ? number : tree.number;
    tree.paths = topology.paths(from, to);
    tree.path =
        topology.choose(connection, from, to,
                        number_for_routing(connection, message, start.at, start.at + duration));
  }
  // Paths are numbered by their first links, so the same share of another receiver's paths begins
  // alike.
  const auto path =
      static_cast<std::uint32_t>(std::uint64_t{tree.path} * topology.paths(from, to) / tree.paths);
  const std::uint32_t id = topology.id(from, to, path);
  OnLinks way{
      .number = tree.number, .target = party, .from = from, .progress = OnLinks::progress_of(id)};
  Payload payload = payload_of(note.note, note.note.words.size() + note.note.content.size());
  const bool to_many = note.to.size() > 1;
  if (payload || number > 0 || to_many)
    way.rest = held_.put(Parcel{
        .message = {{.nonce = to_many ? tree.number : 0, .late_ns = number}, std::move(payload)}});
  Event e;
  describe(note, e);
  e.rank = cluster_.location(party).local;
  e.message = MessageKind::note;
  count_open_notes(1);
  depart(e, way, start, duration, nullptr);
}

// Sends a message whose first byte leaves the NIC at `start`, and whose last byte leaves `duration`
// later. `event`: at its target. `sender`: the flight that a full ring holds; null: none.
void Shard::depart(Event& event, OnLinks& way, Moment start, Picoseconds duration, Flight* sender) {
  const Nic to = nic_to(event, way.target);
  const bool copied = way.rest != kNil && held_[way.rest].message.header.nonce != 0;
  const Picoseconds stretch =
      stretch_of(cluster_.topology(), way.from, to, path_of(way).links(), copied);
  event.t = {start.at + stretch, start.slip};
  // No sooner than handed over, and both its ends behind those that the NIC sent before.
  if (reanchor_) {
    Passage& before = entered_[way.from];
    const Picoseconds head =
        std::max({event.t.at, now_ - duration, before.head, before.tail - duration});
    event.t = {head, start.slip + (head - event.t.at)};
    before = {head, head + duration};
  }
  way.tail = event.t.at + duration;
  event.kind = Event::Kind::link;
  const std::uint32_t link = next_link(way);
  const int owner = cluster_.shard_of_link(link);
  if (owner != index_) {
    event.flight = sender;
    return hand_over(owner, parcel_of(event, way));
  }
  event.rank = target_of_link(link);
  put_on_links(event, way);
}

void Shard::put_on_links(Event& event, const OnLinks& way) {
  event.held = on_links_.put_as_it_is();
  on_links_[event.held] = way;
  if (first_sends_) busy_with_others_ += first_sends_->leaves(event.group & ~kPointToPoint);
  schedule(event);
}

void Shard::drop_from_links(const Event& event) {
  on_links_.drop(event.held);
  if (first_sends_) busy_with_others_ -= first_sends_->leaves(event.group & ~kPointToPoint);
}

// Makes a parcel of a message on links, for another shard. Its header holds what OnLinks does:
//
//   target   the party that receives it
//   start    OnLinks::tail
//   actor    how many links it has passed
//   offset   its number among all that its sender has sent over links
//   bytes    of the last part of a message: of the whole message; else 0
Parcel Shard::parcel_of(const Event& event, const OnLinks& way) {
  Parcel p;
  if (way.rest != kNil) p = held_.take(way.rest);
  p.event = event;
  Header& h = p.message.header;
  h.target = way.target.value();
  h.start = way.tail;
  h.actor = way.passed();
  h.offset = way.number;
  p.flow = static_cast<std::int32_t>(way.path());
  p.nic = way.from;
  return p;
}

// Takes such a parcel, which comes to a link that this shard plays, or to its NIC.
void Shard::take_over_on_links(Parcel&& p) {
  Event event = p.event;
  event.flight = nullptr;  // it points to the sender's flight
  const Header& h = p.message.header;
  OnLinks way{.tail = h.start,
              .number = h.offset,
              .target = WorldParty(h.target),
              .from = p.nic,
              .progress = OnLinks::progress_of(static_cast<std::uint32_t>(p.flow), h.actor)};
  if (event.kind == Event::Kind::link) event.rank = target_of_link(next_link(way));
  if (p.message.payload || h.late_ns != 0 || h.nonce != 0) way.rest = held_.put(std::move(p));
  put_on_links(event, way);
}

KnownPath Shard::path_of(const OnLinks& way) const {
  return cluster_.topology().path_by_id(way.path());
}

std::uint32_t Shard::next_link(const OnLinks& way) const { return path_of(way).link(way.passed()); }

// Returns the NIC by which a message comes in at a party.
Nic Shard::nic_to(const Event& e, WorldParty party) const {
  const Location& location = cluster_.location(party);
  return e.via == 0 ? location.nic : cluster_.nic(location.node, e.via - 1);
}

// Prefetch for pass_link() and land(): call prefetch_on_links() well before prefetch_path().
void Shard::prefetch_on_links(const Event& event) const {
  __builtin_prefetch(&on_links_[event.held], 1);
  if (event.kind != Event::Kind::link) return __builtin_prefetch(&nics_[own_nic_[event.rank]], 1);
  const std::uint32_t link = target_of_link(event.rank);
  __builtin_prefetch(&links_[link], 1);
}

void Shard::prefetch_path(const Event& event) const {
  const OnLinks& way = on_links_[event.held];
  path_of(way).prefetch();
  __builtin_prefetch(&cluster_.location(way.target));
}

[[gnu::noinline]] Passage Shard::pass_changing(Link& link, const RateCurve& curve,
                                               const Passage& in, std::uint64_t bytes,
                                               bool counted) const {
  const auto on_wire = static_cast<double>(nic_.on_wire(bytes));
  return link.pass(in, turn_on(curve, segment_.at, in, link.free(), on_wire), bytes, counted);
}

void Shard::pass_link(const Event& event) {
  OnLinks& way = on_links_[event.held];
  const Topology& topology = cluster_.topology();
  const KnownPath path = path_of(way);
  const std::uint32_t number = path.link(way.passed());
  const LinkSpeed& speed = topology.link(number);
  Link& link = links_[number];
  const Picoseconds duration = speed.serialise(event.bytes());
  const Picoseconds before = link.free_at();
  const Passage in{event.t.at, way.tail, event.t.slip};
  const std::uint64_t copies = way.rest == kNil ? 0 : held_[way.rest].message.header.nonce;
  const bool counted = event.message != MessageKind::permission;  // as in the ledger
  const RateCurve* const curve = links_change_ ? link_rates_->of(number) : nullptr;
  const auto pass = [&] {
    return curve == nullptr ? link.pass(in, duration, event.bytes(), counted)
                            : pass_changing(link, *curve, in, event.bytes(), counted);
  };
  const Passage out = copies == 0 ? pass() : last_note_[number].pass(copies, in.head, pass);
  if (link_times_ && link.free_at() > before) {
    const Picoseconds begin =
        curve == nullptr ? link.free_at() - duration : std::clamp(out.head, before, link.free_at());
    stats_.link_times.add(number, begin, link.free_at());
  }
  Event next = event;
  next.t.slip = out.slip;
  const Location& location = cluster_.location(way.target);
  const Nic to = event.via == 0 ? location.nic : cluster_.nic(location.node, event.via - 1);
  const int links = path.links();
  ++way.progress;
  int shard = location.shard;
  if (static_cast<int>(way.passed()) == links) {
    next.kind = Event::Kind::landing;
    const Picoseconds before_last = stretch_of(topology, way.from, to, links, copies != 0);
    const Picoseconds hop = speed.latency + topology.latency(way.from, to) - links * before_last;
    next.t.at = out.tail + hop;
    way.tail = out.head + hop;  // its last byte is the event's
    next.rank = location.local;
  } else {
    const Picoseconds hop = speed.latency + stretch_of(topology, way.from, to, links, copies != 0);
    next.t.at = out.head + hop;
    way.tail = out.tail + hop;
    const std::uint32_t link_after = path.link(way.passed());
    shard = cluster_.shard_of_link(link_after);
    next.rank = target_of_link(link_after);
  }
  if (shard == index_) return schedule(next);
  next.flight = nullptr;       // the sender's, which went on when the message left
  next.rank = location.local;  // the receiver's at its shard
  Parcel parcel = parcel_of(next, way);
  drop_from_links(event);
  hand_over(shard, std::move(parcel));
}

// Handles a message that has passed its links and reaches its NIC. Returns true when the event goes
// on as an ingress. Returns false when it becomes an arrival in the queue, at the time when it and
// all messages before it on its connection are in. `head`: when its first byte comes.
bool Shard::land(const RankState& r, Event& event, Picoseconds head) {
  const std::uint32_t rest = on_links_[event.held].rest;
  drop_from_links(event);
  event.held = rest;
  std::uint32_t number = 0;
  std::uint64_t whole = 0;
  if (rest != kNil) {
    const Message& message = held_[rest].message;
    number = message.header.late_ns;
    whole = message.header.bytes;
    if (!message.payload) {
      held_.drop(rest);
      event.held = kNil;
    }
  }
  const Nic nic = nic_of(event);
  const LinkSpeed& speed = cluster_.topology().nic(nic);
  const bool port = speed.limited() && event.message != MessageKind::permission;
  if (port && number == 0) return true;
  if (port) {
    const Picoseconds tail = event.t.at;
    Port& ingress = nics_[nic];
    event.t = enter_nic(nic, event, head);
    ingress.must_queue(tail, event.t.at);
  }
  event.kind = Event::Kind::arrival;
  if (number == 0) return schedule(event), false;
  if (whole > 0) event.set_size(whole, event.number());
  come_in_turn(r.party, number, event);
  return false;
}

}  // namespace ghostrank
