// Credits and permissions let messages leave. A credit returns when the receiver's actor has taken
// a message. A permission says that the receiver has posted a receive, for libraries that need that
// (Posting in collectives/schedule.h). See shard.h.
//
//   a step of an actor     announces the receives that it posts, sends what its peers have
//                          permitted, and goes on: Credits::waiting holds the other sends
//   a permission arrives   lets the oldest waiting send to its peer leave; an actor that was
//                          blocked by that send goes on. A permission that comes before its
//                          collective has begun here is kept as an early message
#include <algorithm>
#include <utility>

#include "emulator/shard/inline.h"

namespace ghostrank {
namespace {

constexpr std::uint32_t kOnly = 0;  // a rank that needs permissions has one actor

CreditLine* line_of(std::vector<CreditLine>& lines, GroupRank peer) {  // null: there is none
  for (CreditLine& line : lines) {
    if (line.peer == peer) return &line;
  }
  return nullptr;
}

Connections::Key key_of(const RankState& r, const Flight& f, GroupRank peer) {
  return {r.local, f.group & ~kPointToPoint, peer};
}

}  // namespace

void Shard::control_arrived(RankState& r, Flight* f, const Event& e) {
  if (e.message == MessageKind::credit) {
    if (f) credit_arrived(r, *f, e);  // else the sender's flight has ended and needs no credit
    return;
  }
  const auto& members = workload_.groups[e.group & ~kPointToPoint].members;
  const WorldRank source = members[e.source];
  if (e.kind == Event::Kind::arrival) {
    // A permission stays behind the data that came in before it.
    const bool node = cluster_.location(source).node == cluster_.location(r.party).node;
    const Moment& in = (node ? r.nvlink : nics_[nic_of(e)]).ingress_free;
    const bool linked = node && gpu_links_.between(source, r.id()) >= 0;  // which keeps its order
    if (in.at > e.t.at && !linked) return deliver(e, in);
  }
  if (!f) return early_.push(r.early, e);
  permission_arrived(r, *f, e);
}

// Schedules the same message again, at `at`.
void Shard::deliver(const Event& e, const Moment& at) {
  Event later = e;
  later.kind = Event::Kind::delivery;
  later.t = at;
  schedule(later);
}

// ---- Credits ----

// Takes one credit of every peer of the step, or none. With permissions it posts the step's
// receives and does its sends itself. Returns false when the actor must wait.
bool Shard::take_credit(RankState& r, Flight& f, ActorState& a) {
  if (f.schedule->flow_control().posting.needed()) return exchange(r, f, a);
  std::vector<CreditLine>& lines = a.credits->lines;
  for (const GroupRank peer : a.step->send_to) {
    const CreditLine* line = line_of(lines, peer);
    if (!line) line = &lines.emplace_back(CreditLine{peer, f.schedule->flow_control().credits});
    if (line->left == 0) return false;
  }
  for (const GroupRank peer : a.step->send_to) --line_of(lines, peer)->left;
  return true;
}

// Returns a credit when the actor consumes the message, not when the message arrives. The credit
// takes the path of its data in the other direction, which only a real fabric sees.
void Shard::return_credit(RankState& r, Flight& f, ActorState& a, const Event& consumed) {
  Route& back = a.credits->back;
  if (back.peer != consumed.source) find_route(r, f, consumed.channel, consumed.source, true, back);
  leave(r, f, back, {MessageKind::credit, 0, consumed.actor, consumed.channel, 0, a.ready});
}

void Shard::credit_arrived(RankState& r, Flight& f, const Event& e) {
  if (e.actor >= f.playing) return;
  ActorState& a = f.actors[e.actor];
  if (!a.credits) return;
  for (CreditLine& line : a.credits->lines) {
    if (line.peer != e.source) continue;
    if (line.left++ > 0 || a.k >= a.steps || a.waits || a.awaiting || a.held) return;
    a.ready = later(a.ready, e.t);
    return run_actor(r, f, a);
  }
}

// ---- Permissions ----

// Called when a step has received everything: posts receives and sends, in the library's order.
// Returns false when an earlier send must leave first, or a full fabric holds the actor; the actor
// then calls it again.
bool Shard::exchange(RankState& r, Flight& f, ActorState& a) {
  Credits& c = *a.credits;
  const Posting& posting = f.schedule->flow_control().posting;
  if (!c.sent && posting.sends > 0 && !a.step->send_to.empty() &&
      c.waiting.size() >= static_cast<std::size_t>(posting.sends))
    return false;
  if (posting.receives_first && !post_receives(r, f, a)) return false;
  if (c.sent) return posting.receives_first || post_receives(r, f, a);
  c.sent = true;
  for (const GroupRank peer : a.step->send_to) {
    CreditLine* const line = line_of(c.lines, peer);
    if (!line || line->left == 0) {
      c.waiting.push_back({peer, false, a.step->send, a.ready});
      continue;
    }
    --line->left;
    send_on_connection(r, f, a, peer, a.step->send);
  }
  return posting.receives_first || post_receives(r, f, a);
}

// Sends permissions for the messages that the next steps receive. Returns false when a full fabric
// holds the actor.
bool Shard::post_receives(RankState& r, Flight& f, ActorState& a) {
  int& posted = a.credits->posted;
  const int end = std::min(a.steps, a.k + f.schedule->flow_control().posting.receives + 1);
  for (; posted < end; ++posted) {
    if (a.unposted > 0) return hold(a);
    const Step step = f.schedule->step(f.position, static_cast<int>(f.index_of(a)), posted);
    for (const GroupRank source : step.recv_from) permit(r, f, a, source);
  }
  return true;
}

void Shard::permit(RankState& r, Flight& f, ActorState& a, GroupRank source) {
  Route& back = a.credits->back;
  if (back.peer != source) find_route(r, f, a.channel, source, true, back);
  Moment ready = a.ready;
  ready.at = connections_.behind(key_of(r, f, source), ready.at);
  leave(r, f, back, {MessageKind::permission, 0, f.index_of(a), a.channel, 0, ready});
}

void Shard::permission_arrived(RankState& r, Flight& f, const Event& e) {
  if (!keep_permission(f, e)) return;
  ActorState& a = f.actors[kOnly];
  if (!send_permitted(r, f, a) || a.awaiting || a.held) return;
  a.ready = later(a.ready, e.t);
  run_actor(r, f, a);
}

// Gives the permission to the oldest send that waits for it, or keeps it for a later send. A stray
// permission ends the run; returns false then.
bool Shard::keep_permission(Flight& f, const Event& e) {
  if (!f.schedule->flow_control().posting.needed() || f.playing == 0) {
    fail("a permission from rank " + std::to_string(e.source) + " of group " +
         std::to_string(e.group & ~kPointToPoint) +
         " came for a call that needs none; do all processes run the same job?");
    return false;
  }
  Credits& c = *f.actors[kOnly].credits;
  for (WaitingSend& send : c.waiting) {
    if (send.peer != e.source || send.permitted) continue;
    send.permitted = true;
    send.ready = later(send.ready, e.t);
    return true;
  }
  if (CreditLine* const line = line_of(c.lines, e.source))
    ++line->left;
  else
    c.lines.push_back({e.source, 1});
  return true;
}

// Sends the permitted slices. Returns false when a full fabric holds the actor.
bool Shard::send_permitted(RankState& r, Flight& f, ActorState& a) {
  std::vector<WaitingSend>& waiting = a.credits->waiting;
  for (auto next = waiting.begin(); next != waiting.end();) {
    if (!next->permitted) {
      ++next;
      continue;
    }
    if (a.unposted > 0) return hold(a);
    const WaitingSend send = *next;
    next = waiting.erase(next);
    // The rank has gone on since: keep its own time apart from the send's.
    const Moment own = std::exchange(a.ready, send.ready);
    send_on_connection(r, f, a, send.peer, send.slice);
    a.ready = own;
  }
  return true;
}

// Sends a slice and marks its connection as taken, so that later permissions to the peer stay
// behind it.
void Shard::send_on_connection(RankState& r, Flight& f, ActorState& a, GroupRank peer,
                               const Block& slice) {
  send_slice(r, f, a, peer, slice);
  const Route& route = a.route;
  const auto take = [&](const Moment& free) {
    connections_.take(key_of(r, f, peer), free.at, now_);
  };
  if (route.hop == Route::Hop::gpu_link) return take(gpu_links_.free_from(route.flow));
  const bool node = route.hop == Route::Hop::node;
  if ((node ? intra_ : nic_).limited())
    take((node ? r.nvlink : nics_[route.nics.source]).egress_free);
}

}  // namespace ghostrank
