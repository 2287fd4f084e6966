// How messages cross links between switches. Each link is an event at the shard that plays the
// link, at the time when the message's first byte arrives there. See shard.h and network/links.h.
//
//   sender's NIC ──> link ──> link ──> landing ──> target's NIC, as without links
//
// A message on its way is a parcel; the shard of its next link holds it, and the event there is the
// link's. Links are targets of events as ranks are, with the highest numbers. Messages that come to
// a link at the same time pass by sender, then in the order in which their sender sent them.
#include <algorithm>

#include "emulator/shard/inline.h"
#include "emulator/shard/on_the_way/packet_connections.h"

namespace ghostrank {
namespace {

std::uint32_t target_of_link(std::uint32_t link) { return kMostTargets - 1 - link; }

// Fields of the header while the parcel is on links:
//   target   the party that receives it
//   start    when its last byte arrives at its next link or NIC
//   actor    how many links it has passed
//   offset   its number among all that its sender has sent over links
//   late_ns  its number on its connection, where the connection may reorder; else 0
//   nonce    of a note to many: the `offset` that all copies share; else 0
Picoseconds& tail_of(Parcel& p) { return p.message.header.start; }
std::uint32_t& passed_by(Parcel& p) { return p.message.header.actor; }

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
// packets. Chooses the path here, once, where the routing chooses for connections; credits take
// none.
void Shard::find_path(const RankState& r, const Flight& f, int channel, MessageKind kind,
                      Route& route) const {
  const Topology& topology = cluster_.topology();
  const std::uint32_t paths = topology.paths(route.nics.source, route.nics.target);
  if (by_packets_) {
    route.hop = Route::Hop::packets;
    if (paths > 0 && !topology.one_path()) return;
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
  if (paths == 0 || kind == MessageKind::credit || !topology.one_path()) return;
  route.flow = static_cast<std::int32_t>(
      topology.choose_id({f.group, static_cast<std::uint16_t>(channel), r.party, route.target},
                         route.nics.source, route.nics.target));
}

// Sends a message that takes its NIC for `duration` from `start` on, over links. Credits skip the
// links as they skip NIC ports, because they have a queue of their own.
void Shard::leave_by_links(RankState& r, Flight& f, Route& route, const Leaving& m,
                           const Moment& start, Picoseconds duration, Payload* content) {
  const Topology& topology = cluster_.topology();
  Parcel p;
  p.flow = route.flow;
  p.nic = route.nics.source;
  if (content) p.message.payload = std::move(*content);
  m.describe(f, p.event);
  p.event.message = m.kind;
  p.event.flight = nullptr;
  p.event.rank = route.rank;
  p.event.via = route.comes_in;
  const bool here = route.shard == index_;
  if (m.kind == MessageKind::credit) {
    p.event.kind = Event::Kind::arrival;
    const Picoseconds latency = topology.path_latency(
        route.nics.source, route.nics.target, topology.hops(route.nics.source, route.nics.target));
    p.event.t = {m.ready.at + duration + latency, m.ready.slip};
    if (!here) return hand_over(route.shard, std::move(p));
    p.event.flight = flight_at_target(route, p.event);
    return schedule(p.event);
  }
  Header& h = p.message.header;
  h.target = route.target.value();
  h.offset = next_on_links(r.local);
  if (!topology.one_path()) {
    const RoutedConnection connection{f.group, m.channel, r.party, route.target};
    h.late_ns = in_turn_.number(connection);
    const std::uint64_t chosen_for =
        number_for_routing(connection, h.late_ns, start.at, start.at + duration);
    p.flow = static_cast<std::int32_t>(
        topology.choose_id(connection, route.nics.source, route.nics.target, chosen_for));
  }
  Flight* const target = here ? flight_at_target(route, p.event) : nullptr;
  p.event.flight = &f;  // a full ring holds its actor
  if (copy_payload_) copy_as_much(m.bytes);
  depart(std::move(p), start, duration, target);
}

// Sends one copy of a note from its NIC over links. All copies have the same `tree`, so that they
// share links.
void Shard::note_by_links(const LeavingNote& note, NoteTree& tree, WorldParty party,
                          const Moment& start, Picoseconds duration) {
  const Topology& topology = cluster_.topology();
  const Nic from = cluster_.location(note.party).nic, to = cluster_.location(party).nic;
  const bool ordered = !topology.one_path() && note.carriage == Carriage::reliable;
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
  Parcel p{
      .message = {{}, payload_of(note.note, note.note.words.size() + note.note.content.size())},
      .flow = static_cast<std::int32_t>(id),
      .nic = from};
  Header& h = p.message.header;
  h.target = party.value();
  h.offset = tree.number;
  h.late_ns = number;
  h.nonce = note.to.size() > 1 ? tree.number : 0;
  describe(note, p.event);
  p.event.rank = cluster_.location(party).local;
  p.event.message = MessageKind::note;
  count_open_notes(1);
  depart(std::move(p), start, duration, nullptr);
}

// Sends a parcel whose first byte leaves the NIC at `start`, and whose last byte leaves `duration`
// later. `target`: the flight that it is for, as in an event.
void Shard::depart(Parcel&& p, Moment start, Picoseconds duration, Flight* target) {
  const Header& h = p.message.header;
  const Nic to = nic_to(p.event, WorldParty(h.target));
  const Picoseconds stretch = cluster_.topology().stretch(p.nic, to, path_of(p).links);
  p.event.t = {start.at + stretch, start.slip};
  if (reanchor_) {  // no sooner than handed over, and behind what the NIC sent before
    Picoseconds& before = entered_[p.nic];
    const Picoseconds head = std::max({p.event.t.at, now_ - duration, before});
    p.event.t = {head, start.slip + (head - p.event.t.at)};
    before = head;
  }
  tail_of(p) = p.event.t.at + duration;
  p.event.kind = Event::Kind::link;
  const int owner = cluster_.shard_of_link(next_link(p));
  if (owner == index_) return put_before_link(std::move(p), target);
  hand_over(owner, std::move(p));
}

// Takes the parcel to its next link, where it arrives at event.t; this shard plays the link.
void Shard::put_before_link(Parcel&& p, Flight* target) {
  Event event = p.event;
  event.rank = target_of_link(next_link(p));
  event.flight = target;
  event.held = held_.put(std::move(p));
  schedule(event);
}

// Hands over a parcel on links that another shard goes on with. `event`: what happens to it there;
// `rank`: the receiver's local index at its shard.
void Shard::hand_over_link(int shard, const Event& event, std::uint32_t rank) {
  Parcel p = held_.take(event.held);
  p.event = event;
  p.event.flight = nullptr;  // its sender's; it went on when the message left there
  p.event.rank = rank;
  hand_over(shard, std::move(p));
}

const Path& Shard::path_of(const Parcel& p) const {
  return cluster_.topology().path_by_id(static_cast<std::uint32_t>(p.flow));
}

std::uint32_t Shard::next_link(const Parcel& p) const {
  return path_of(p).link[p.message.header.actor];
}

// Returns the NIC by which a message comes in at a party.
Nic Shard::nic_to(const Event& e, WorldParty party) const {
  const Location& location = cluster_.location(party);
  return e.via == 0 ? location.nic : cluster_.nic(location.node, e.via - 1);
}

// Fetch what pass_link() and land() will touch: call the first well before the second.
void Shard::prefetch_on_links(const Event& event) const {
  const auto* parcel = reinterpret_cast<const char*>(&held_[event.held].message);
  for (std::size_t line = 0; line <= sizeof(Parcel) - offsetof(Parcel, message); line += 64)
    __builtin_prefetch(parcel + line, 1);
  if (event.kind != Event::Kind::link) return __builtin_prefetch(&nics_[own_nic_[event.rank]], 1);
  const std::uint32_t link = target_of_link(event.rank);
  __builtin_prefetch(&links_[link], 1);
  __builtin_prefetch(reinterpret_cast<const char*>(&links_[link]) + 64, 1);
  __builtin_prefetch(&cluster_.topology().link(link));
}

void Shard::prefetch_path(const Event& event) const {
  const Parcel& parcel = held_[event.held];
  __builtin_prefetch(&path_of(parcel));
  __builtin_prefetch(&cluster_.location(WorldParty(parcel.message.header.target)));
}

void Shard::pass_link(const Event& event) {
  Parcel& p = held_[event.held];
  const Topology& topology = cluster_.topology();
  const std::uint32_t number = next_link(p);
  const LinkSpeed& speed = topology.link(number);
  Link& link = links_[number];
  const std::uint64_t passed = link.count().messages;
  const Passage out =
      link.pass({event.t.at, tail_of(p), event.t.slip}, speed.serialise(event.bytes()),
                event.bytes(), p.message.header.nonce);
  if (link_times_ && link.count().messages > passed)
    stats_.link_times.add(number, link.free_at() - speed.serialise(event.bytes()), link.free_at());
  Event next = event;
  next.t.slip = out.slip;
  const WorldParty target(p.message.header.target);
  const Nic to = nic_to(event, target);
  const Location& location = cluster_.location(target);
  const int links = path_of(p).links;
  const bool last = ++passed_by(p) == static_cast<std::uint32_t>(links);
  const Picoseconds hop = speed.latency + (last ? topology.last_stretch(p.nic, to, links)
                                                : topology.stretch(p.nic, to, links));
  int shard = location.shard;
  if (last) {
    next.kind = Event::Kind::landing;
    next.t.at = out.tail + hop;
    next.rank = location.local;
  } else {
    next.t.at = out.head + hop;
    tail_of(p) = out.tail + hop;
    const std::uint32_t link_after = next_link(p);
    shard = cluster_.shard_of_link(link_after);
    next.rank = target_of_link(link_after);
  }
  shard == index_ ? schedule(next) : hand_over_link(shard, next, location.local);
}

// Handles a message that has passed its links and reaches its NIC. Returns true when the event goes
// on as an ingress. Returns false when it becomes an arrival in the queue, at the time when it and
// all messages before it on its connection are in.
bool Shard::land(const RankState& r, Event& event) {
  const std::uint32_t number = held_[event.held].message.header.late_ns;
  if (!held_[event.held].message.payload) {
    held_.drop(event.held);
    event.held = kNil;
  }
  const Nic nic = nic_of(event);
  const LinkSpeed& speed = cluster_.topology().nic(nic);
  const bool port = speed.limited() && event.message != MessageKind::permission;
  if (port && number == 0) return true;
  if (port) {
    const Picoseconds tail = event.t.at;
    Port& ingress = nics_[nic];
    event.t =
        ingress.take_ingress(event.t, time_at_nic(nic, ingress.ingress_free.at, event.bytes()));
    ingress.must_queue(tail, event.t.at);
  }
  event.kind = Event::Kind::arrival;
  if (number == 0) return schedule(event), false;
  in_turn_.arrived(connection_of(event, r.party), number, event,
                   [this](const Event& next) { schedule(next); });
  return false;
}

}  // namespace ghostrank
