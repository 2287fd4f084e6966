// Messages of collectives in flight: how slices leave, arrive, are matched and combined. See
// shard.h.
#include <algorithm>
#include <cstring>

#include "emulator/shard/inline.h"

namespace ghostrank {
namespace {

// Libraries that post receives read their connections on a separate thread. That thread wakes the
// caller, which goes on this much later, but handles control messages behind the data at once.
constexpr Picoseconds kCallerWakes = 20 * kPicosPerMicro;

// Calls visit(Block) for each place where elements of the slice lie: one, or several where the step
// is scattered.
template <typename F>
void for_each_block(const Flight& f, const ActorState& a, const Block& slice, Way way,
                    const F& visit) {
  if (!a.step->scattered) return visit(slice);
  std::vector<Block> pieces;
  f.schedule->pieces(f.position, static_cast<int>(f.index_of(a)), a.k, way, pieces);
  for (const Block& piece : pieces) visit(piece);
}

// Returns the actor that a message is for; a number beyond the last actor: the collective does not
// have the message's channel.
std::uint32_t receiver_of(const Flight& f, const Event& e) {
  if (f.lone) return 0;
  return static_cast<std::uint32_t>(f.schedule->receiver(f.position, e.channel, e.source));
}

std::string stray(const Event& e) {
  return "a message from rank " + std::to_string(e.source) + " of group " +
         std::to_string(e.group & ~kPointToPoint) + " came on channel " +
         std::to_string(e.channel) +
         ", which the collective does not have; do all processes run the same job?";
}

}  // namespace

// ---- Sending ----

// Finds the route of messages from the flight's rank to `peer`. `back`: for credits and
// permissions, which take the path of the peer's data in the other direction.
void Shard::find_route(const RankState& r, Flight& f, int channel, GroupRank peer, bool back,
                       Route& route) {
  settle(f, route);
  const auto& members = workload_.groups[f.group & ~kPointToPoint].members;
  route = {.peer = peer, .number = route.number};
  route.target = members[peer];
  const Location &from = cluster_.location(r.party), &to = cluster_.location(route.target);
  route.rank = to.local;
  route.shard = to.shard;
  if (to.node == from.node) {
    route.flow = gpu_links_.between(r.id(), route.target);
    if (route.flow >= 0) route.hop = Route::Hop::gpu_link;
    return;
  }
  route.hop = flows_.carries(from, to) ? Route::Hop::fabric : Route::Hop::process;
  const NicPair data = back ? nics_of(cluster_, *f.schedule, members, peer, f.position, channel)
                            : nics_of(cluster_, *f.schedule, members, f.position, peer, channel);
  route.nics = back ? NicPair{data.target, data.source} : data;
  if (route.nics.target != to.nic)
    route.comes_in = static_cast<std::uint8_t>(route.nics.target - cluster_.nic(to.node, 0) + 1);
  if ((slice_ || recorder_) && crosses(from, to)) {
    route.hop = Route::Hop::crossing;
    return;
  }
  const MessageKind kind = !back                                         ? MessageKind::data
                           : f.schedule->flow_control().posting.needed() ? MessageKind::permission
                                                                         : MessageKind::credit;
  if (route.hop == Route::Hop::process) return find_path(r, f, channel, kind, route);
  Header h;
  h.group = f.group;
  h.channel = static_cast<std::uint16_t>(channel);
  h.kind = kind;
  route.flow = flows_.index_of(r.party, route.target, h, route.nics);
  if (rates_) route.hop = Route::Hop::changing;
  if (route.flow >= 0) return;
  fail("rank " + to_string(r.party) + " sends to rank " + to_string(route.target) + " on channel " +
       std::to_string(channel) + " of group " + std::to_string(f.group & ~kPointToPoint) +
       ", for which the plan opened no flow; fabric.flows: process needs none");
}

// Adds the route's messages that are not yet counted to the ledger.
void Shard::settle(const Flight& f, Route& route) {
  if (route.sent.messages == 0) return;
  if (slice_ && route.hop == Route::Hop::crossing) {
    stats_.to_outside += route.sent;
  } else if (recorder_) {  // the slice has a ledger of its own
  } else if (route.hop == Route::Hop::node || route.hop == Route::Hop::gpu_link) {
    ledger_.add_intra(f.row, route.sent);
  } else {
    ledger_.add({route.nics.source, route.nics.target, f.row}, route.sent);
  }
  route.sent = {};
}

// In verify mode: sends the slice with its content, gathered into one piece.
void Shard::leave_with_content(RankState& r, Flight& f, ActorState& a, const Leaving& m,
                               const Block& slice) {
  const std::uint32_t element = f.schedule->collective().element_bytes;
  Payload content = spare_.take(m.bytes);
  std::byte* to = content.get();
  for_each_block(f, a, slice, Way::send, [&](const Block& block) {
    if (block.buffer != Buffer::none) f.data->read(block, to);
    to += block.count * element;
  });
  leave(r, f, a.route, m, &content);
}

// Sends a message: over NVLink inside the node, through the modelled NICs inside this process, or
// through the fabric when the egress port is free. Credits and permissions skip the ports and
// overtake other connections' data, because they have a queue of their own; no actor waits until a
// credit has left. `content` is moved out; null: the payload is synthetic.
void Shard::leave(RankState& r, Flight& f, Route& route, const Leaving& m, Payload* content) {
  if (route.hop >= Route::Hop::packets)
    return route.hop == Route::Hop::packets    ? leave_by_packets(r, f, route, m, content)
           : route.hop == Route::Hop::gpu_link ? leave_by_gpu_link(f, route, m, content)
           : route.hop == Route::Hop::crossing ? leave_crossing(r, f, route, m)
                                               : leave_changing_nic(r, f, route, m, content);
  const bool node = route.hop == Route::Hop::node, data = m.kind == MessageKind::data;
  const LinkSpeed& link = node ? intra_ : nic_;
  const bool ports = data && link.limited();
  const Picoseconds d = link.serialise(m.bytes);
  Moment t = m.ready;
  if (ports) {
    Port& port = node ? r.nvlink : nics_[route.nics.source];
    t = port.take_egress(t, d);
  }
  if (route.hop >= Route::Hop::fabric)
    return route.hop == Route::Hop::fabric ? leave_process(r, f, route, m, t, content)
           : m.kind == MessageKind::credit ? credit_by_links(f, route, m, d)
                                           : leave_by_links(r, f, route, m, t, d, content);
  t.at += d + link.latency;
  if (!node) {
    // A message arrives no sooner than it was handed over.
    if (reanchor_ && now_ > t.at) t = {now_, t.slip + (now_ - t.at)};
    if (copy_payload_) copy_as_much(m.bytes);
  }
  come_in(f, route, m, t,
          !ports ? Event::Kind::arrival
          : node ? Event::Kind::nvlink
                 : Event::Kind::ingress,
          content);
}

// The link's other end takes bytes in as they come: nothing else comes over it.
[[gnu::noinline]] void Shard::leave_by_gpu_link(Flight& f, Route& route, const Leaving& m,
                                                Payload* content) {
  const LinkSpeed& link = gpu_links_.speed(route.flow);
  const Picoseconds d = link.serialise(m.bytes);
  Moment t = m.kind == MessageKind::data ? gpu_links_.take(route.flow, m.ready, d) : m.ready;
  t.at += d + link.latency;
  come_in(f, route, m, t, Event::Kind::arrival, content);
}

// Sends a message between NICs whose rates change. How long it takes depends on when it starts. The
// slower of the two NICs sets at each time how fast its bytes pass, and holds up the sender's NIC
// meanwhile, so that no message overtakes an earlier one of its connection. On a real
// network it then leaves at that pace; its receiver knows its start, but no latency, and says by
// that when it is in (arrive_from_wire).
void Shard::leave_changing_nic(RankState& r, Flight& f, Route& route, const Leaving& m,
                               Payload* content) {
  const bool data = m.kind == MessageKind::data;
  const auto [source, target] = route.nics;
  const Topology& topology = cluster_.topology();
  const int hops = topology.hops(source, target);
  const bool wired = wired_ && hops == 0 && route.flow >= 0;
  const Picoseconds latency = wired ? 0 : topology.path_latency(source, target, hops);
  Moment t = data ? later(m.ready, nics_[source].egress_free) : m.ready;
  const Picoseconds d = time_between(route.nics, latency, t.at, m.bytes);
  if (data) t = nics_[source].take_egress(m.ready, d);
  if (hops > 0)
    return m.kind == MessageKind::credit ? credit_by_links(f, route, m, d)
                                         : leave_by_links(r, f, route, m, t, d, content);
  if (wired) return leave_process(r, f, route, m, t, content);
  t.at += d + latency;
  if (reanchor_ && now_ > t.at) t = {now_, t.slip + (now_ - t.at)};
  if (copy_payload_) copy_as_much(m.bytes);
  come_in(f, route, m, t, data ? Event::Kind::ingress : Event::Kind::arrival, content);
}

// Credits skip the links as they skip NIC ports, because they have a queue of their own.
[[gnu::noinline]] void Shard::credit_by_links(Flight& f, Route& route, const Leaving& m,
                                              Picoseconds duration) {
  const Picoseconds latency =
      cluster_.topology().path_latency(route.nics.source, route.nics.target, route.flow);
  come_in(f, route, m, {m.ready.at + duration + latency, m.ready.slip}, Event::Kind::arrival,
          nullptr);
}

// Spends the time that copying a payload of this size takes.
[[gnu::noinline]] void Shard::copy_as_much(std::uint64_t bytes) {
  while (bytes > 0) {
    const std::uint64_t n = std::min<std::uint64_t>(bytes, scratch_.size() / 2);
    std::memcpy(scratch_.data(), scratch_.data() + scratch_.size() / 2, n);
    bytes -= n;
  }
}

// Sends a message through the fabric: now if `start` is due, else from the queue at `start`. A
// message that is due stays behind the queue's messages for the same flow whose senders went on,
// because receivers count on the order of a connection.
void Shard::leave_process(RankState& r, Flight& f, const Route& route, const Leaving& m,
                          const Moment& start, Payload* content) {
  if (route.flow < 0) return;  // find_route has failed the run
  Message message{.header = {.nonce = nonce_,
                             .group = f.group,
                             .sequence = f.sequence,
                             .source = f.position,
                             .target = route.target.value(),
                             .channel = m.channel,
                             .kind = m.kind,
                             .nic = route.comes_in,
                             .actor = m.actor,
                             .bytes = m.bytes & kMostBytes,
                             .number = m.number,
                             .start = start.at,
                             .slip_ns = to_ns(start.slip)}};
  if (content) message.payload = std::move(*content);
  const int outbox = cluster_.shards() + route.flow;
  const bool due = start.at <= now_ && !outboxes_.has_turns(outbox);
  const bool passes =
      may_pass_ > 0 && m.kind == MessageKind::data && !f.schedule->flow_control().posting.needed();
  may_pass_ -= passes;
  if (due && (passes || outboxes_.empty(outbox)) &&
      try_send(route.flow, route.nics.source, message))
    return;
  Parcel p{.message = std::move(message), .flow = route.flow, .nic = route.nics.source};
  p.event.kind = Event::Kind::post;
  p.event.t = start;
  p.event.rank = r.local;
  p.event.actor = m.actor;
  p.event.flight = m.kind == MessageKind::credit ? nullptr : &f;
  if (due) return keep(outbox, std::move(p));
  // With a NIC rate the message has a turn at the NIC, and its sender goes on, as inside a process.
  // Without a rate there are no turns, so the sender waits: for example at the start of a segment,
  // when nothing may leave yet.
  if (nic_.limited() || m.kind != MessageKind::data) p.event.flight = nullptr;
  if (p.event.flight) ++f.actors[m.actor].unposted;
  outboxes_.add_turn(outbox, p.event.flight != nullptr);
  Event e = p.event;
  e.held = held_.put(std::move(p));
  schedule(e);
}

// Does a step's work on the rank's own buffers. It touches data only and takes no emulated time.
void Shard::do_locals(Flight& f, ActorState& a) {
  std::vector<Local> locals;
  f.schedule->locals(f.position, static_cast<int>(f.index_of(a)), a.k, locals);
  for (const Local& local : locals) f.data->apply(local);
}

// ---- Arriving ----

// Takes a message that came through the fabric.
void Shard::arrive_from_wire(Message m) {
  const Header& h = m.header;
  if (h.kind == MessageKind::note) return note_from_wire(std::move(m));
  const WorldRank target(h.target);
  if (h.target < 0 || h.target >= workload_.ranks || cluster_.location(target).host != host_ ||
      cluster_.location(target).shard != index_) {
    return fail("a message for rank " + std::to_string(h.target) + " came to host " +
                to_string(host_) + ", which does not play it; do all processes run the same job?");
  }
  if (h.kind == MessageKind::passed && slice_) return passed_from_wire(h);
  if (h.nic > cluster_.nics_per_node())
    return fail("a message came for NIC " + std::to_string(h.nic - 1) +
                ", which nodes of this job do not have; do all processes run the same job?");
  const std::uint32_t group = h.group & ~kPointToPoint;
  if (group >= workload_.groups.size() || h.source < 0 ||
      static_cast<std::size_t>(h.source) >= workload_.groups[group].members.size())
    return fail("a message came from rank " + std::to_string(h.source) + " of group " +
                std::to_string(group) +
                ", which this job does not have; do all processes run the same job?");
  const Location& p = cluster_.location(target);
  const Nic in = h.nic == 0 ? p.nic : cluster_.nic(p.node, h.nic - 1);
  const Location& from = cluster_.location(workload_.groups[group].members[h.source]);
  const auto takes = [&](Nic nic) { return time_between({nic, in}, 0, h.start, h.bytes); };
  Picoseconds duration = rates_ ? takes(from.nic) : nic_.serialise(h.bytes);
  // NCCL chooses NICs, and a message does not say by which one it left. The fastest one of its node
  // lets none overtake an earlier one of its connection.
  if (rates_ && cluster_.machine(workload_.groups[group].kind))
    for (int nic = 0; nic < cluster_.nics_per_node(); ++nic)
      duration = std::min(duration, takes(cluster_.nic(from.node, nic)));
  const Picoseconds floor = h.start + duration;
  Event e = event_from_wire(h, floor, now_, poll_lag_);
  e.rank = p.local;
  e.via = h.nic;
  if (h.kind == MessageKind::data && nic_.limited()) e.kind = Event::Kind::ingress;
  if (m.payload) e.held = held_.put(Parcel{.message = std::move(m)});
  // Fire it at once only if it comes before every queued event, to keep the order of its
  // connection. Most messages do.
  if (e.t.at <= now_ && (timers_.empty() || e.t.at < timers_.next())) return fire_at_once(e);
  schedule(e);
}

void Shard::arrive(RankState& r, const Event& e) {
  Flight* f = e.flight && e.flight->expects(e) ? e.flight : r.flights.find(e);
  if (e.message != MessageKind::data) return control_arrived(r, f, e);
  if (!f) return early_.push(r.early, e);
  if (!f->lone && e.kind == Event::Kind::arrival && f->schedule->flow_control().posting.needed())
    return deliver(e, {e.t.at + kCallerWakes, e.t.slip});
  const std::uint32_t actor = receiver_of(*f, e);
  if (actor >= f->playing) return fail(stray(e));
  ActorState& a = f->actors[actor];
  for (int bit = 0; bit < a.step->recv_from.size(); ++bit) {
    if ((a.awaiting >> bit & 1) && a.step->recv_from[bit] == e.source && a.early.empty()) {
      accept(r, *f, a, bit, e);
      if (a.awaiting == 0) run_actor(r, *f, a);
      return;
    }
  }
  early_.push(a.early, e);
  if (a.awaiting && take_early(r, *f, a)) run_actor(r, *f, a);
}

// Ends the run, because another message has overtaken this one.
[[gnu::noinline, gnu::cold]] void Shard::refuse_overtaken(const RankState& r, const ActorState& a,
                                                          int bit, const Event& e) {
  fail("rank " + to_string(r.party) + " got message " + std::to_string(e.number()) + " of rank " +
       std::to_string(e.source) + " in group " + std::to_string(e.group & ~kPointToPoint) +
       " on channel " + std::to_string(e.channel) + " after its message " +
       std::to_string(a.numbers[bit]) +
       ": a connection has changed their order; this is a defect of ghostrank or of the fabric");
}

// Accepts the awaited slice from recv_from[bit]: combines it and returns its credit to the sender.
void Shard::accept(RankState& r, Flight& f, ActorState& a, int bit, const Event& e) {
  if (!a.in_order(bit, e.number())) [[unlikely]]
    return refuse_overtaken(r, a, bit, e);
  const Block slice = slice_of(a.step->recv, *a.step, a.slice);
  const std::uint32_t element = f.schedule->collective().element_bytes;
  const std::uint64_t expected = message_bytes(f.schedule->protocol(), slice.count, element);
  if (e.bytes() != expected) [[unlikely]] {
    return fail("rank " + to_string(r.party) + " got " + std::to_string(e.bytes()) +
                " bytes where its schedule expects " + std::to_string(expected) +
                "; do all processes run the same job?");
  }
  if (e.held != kNil) {
    Payload payload = held_.take(e.held).message.payload;
    const std::byte* from = payload.get();
    for_each_block(f, a, slice, Way::recv, [&](const Block& block) {
      if (f.data && block.buffer != Buffer::none) f.data->write(block, from, a.step->on_recv);
      from += block.count * element;
    });
    spare_.give(e.bytes(), std::move(payload));
  }
  a.ready = later(a.ready, e.t);
  a.awaiting = static_cast<std::uint8_t>(a.awaiting & ~(1u << bit));
  if (a.credits && f.schedule->flow_control().credits > 0) return_credit(r, f, a, e);
}

// Accepts early messages that the current step awaits. Returns true when the step awaits nothing
// more.
bool Shard::take_early(RankState& r, Flight& f, ActorState& a) {
  const auto accept_awaited = [&](const Event& e) {
    for (int bit = 0; bit < a.step->recv_from.size(); ++bit) {
      if (!(a.awaiting >> bit & 1) || a.step->recv_from[bit] != e.source) continue;
      accept(r, f, a, bit, e);
      return true;
    }
    return false;
  };
  early_.take(a.early, accept_awaited, [&] { return a.awaiting == 0; });
  return a.awaiting == 0;
}

// Moves messages that arrived before the rank started this collective to the collective's actors.
void Shard::adopt_early(RankState& r, Flight& f) {
  bool refused = false;
  const auto adopt = [&](const Event& e) {
    if (r.flights.find(e) != &f) return false;
    if (e.message == MessageKind::permission) {
      refused = !keep_permission(f, e);
      return true;
    }
    const std::uint32_t actor = receiver_of(f, e);
    refused = actor >= f.playing;
    refused ? fail(stray(e)) : early_.push(f.actors[actor].early, e);
    return true;
  };
  early_.take(r.early, adopt, [&] { return refused; });
}

}  // namespace ghostrank
