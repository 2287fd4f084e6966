// Messages of collectives in flight: how slices leave, arrive, are matched and combined, and how
// credits come back. See shard.h.
#include <algorithm>
#include <cstring>

#include "emulator/assert.h"
#include "emulator/shard.h"
#include "emulator/verify.h"

namespace ghostrank {
namespace {

std::uint32_t to_ns(Picoseconds t) {
  return static_cast<std::uint32_t>(
      std::min<Picoseconds>(std::max<Picoseconds>(t, 0) / kPicosPerNano, 0xffffffff));
}

// Where a slice's elements lie: in one place, unless the step puts its messages together.
template <typename F>
void for_each_place(const Flight& f, std::uint32_t actor, const Block& slice, Way way, F visit) {
  const ActorState& a = f.actors[actor];
  if (!a.step.scattered) return visit(slice);
  std::vector<Block> pieces;
  f.schedule->pieces(f.position, static_cast<int>(actor), a.k, way, pieces);
  for (const Block& piece : pieces) visit(piece);
}

std::byte* data_of(Flight& f, Buffer buffer) {
  return (buffer == Buffer::work ? f.work : buffer == Buffer::input ? f.input : f.scratch).get();
}

void combine(Flight& f, std::byte* into, const std::byte* from, std::uint64_t count, Combine how) {
  if (how == Combine::reduce) return add_elements(f.op->dtype, into, from, count);
  std::memcpy(into, from, count * f.schedule->collective().element_bytes);
}

}  // namespace

// ---- Sending ----

void Shard::send_slice(RankState& r, Flight& f, std::uint32_t actor, Rank peer,
                       const Block& slice) {
  ActorState& a = f.actors[actor];
  const std::uint32_t element = f.schedule->collective().element_bytes;
  const auto& members = workload_.groups[f.group & ~kPointToPoint].members;
  Message m;
  m.header.group = f.group;
  m.header.sequence = f.sequence;
  m.header.source = f.position;
  m.header.target = members[static_cast<std::size_t>(peer)];
  m.header.channel = static_cast<std::uint16_t>(a.channel);
  m.header.actor = actor;
  m.header.bytes = message_bytes(f.schedule->protocol(), slice.count, element);
  if (segment_.verify && slice.count > 0) {
    m.payload = std::make_unique<std::byte[]>(m.header.bytes);
    std::byte* to = m.payload.get();
    for_each_place(f, actor, slice, Way::send, [&](const Block& place) {
      if (place.buffer != Buffer::none)
        std::memcpy(to, data_of(f, place.buffer) + place.offset * element, place.count * element);
      to += place.count * element;
    });
  }
  const Place& to = cluster_.place(m.header.target);
  ++stats_.messages;
  if (to.node == r.place.node) {
    ledger_.add_intra(m.header.bytes);
  } else {
    if (a.cell_peer != peer || a.cell_generation != ledger_.generation()) {
      a.cell_nics = nics_of(cluster_, *f.schedule, members, f.position, peer, a.channel);
      a.cell = &ledger_.cell({a.cell_nics.source, a.cell_nics.target, f.row});
      a.cell_peer = peer;
      a.cell_generation = ledger_.generation();
    }
    a.cell->bytes += m.header.bytes;
    ++a.cell->messages;
  }
  route(r, &f, std::move(m), a.ready, a.cell_nics);
}

// Puts a message on its way at `t`: over NVLink inside the node, through the modelled NICs inside
// this process, or through the fabric when the egress has its turn.
void Shard::route(RankState& r, Flight* f, Message m, Moment t, const NicPair& nics) {
  const Place& to = cluster_.place(m.header.target);
  Event e;
  e.rank = static_cast<std::uint32_t>(to.local);
  e.flight = f;
  if (to.node == r.place.node) {
    const Picoseconds d = intra_.serialise(m.header.bytes);
    e.t = {r.nvlink.take_egress(t.at, d) + d + intra_.latency, t.slip};
    e.message = std::move(m);
    return schedule(std::move(e));
  }
  const Picoseconds d = nic_.serialise(m.header.bytes);
  const bool credit = m.header.kind == MessageKind::credit;  // passes data on a queue of its own
  const Picoseconds start =
      credit ? t.at : nics_[static_cast<std::size_t>(nics.source)].take_egress(t.at, d);
  if (!flows_.carries(r.place, to)) {
    e.t = {start + d + nic_.latency, t.slip};
    if (reanchor_ && now_ > e.t.at)
      e.t = {now_, t.slip + (now_ - e.t.at)};  // not there before it was handed over
    e.through_nic = !credit;
    e.nic = nics.target;
    if (copy_payload_) {
      for (std::uint64_t left = m.header.bytes; left > 0;) {
        const std::uint64_t n = std::min<std::uint64_t>(left, scratch_.size() / 2);
        std::memcpy(scratch_.data(), scratch_.data() + scratch_.size() / 2, n);
        left -= n;
      }
    }
    e.message = std::move(m);
    if (to.shard == index_) return schedule(std::move(e));
    return hand_over(to.shard, std::move(e));
  }
  e.kind = Event::Kind::post;
  e.nic = nics.source;
  e.flow = flows_.index_of(r.id, m.header.target, m.header, nics);
  if (e.flow < 0) return no_flow(r, m.header);
  const int in = nics.target - to.node * cluster_.nics_per_node();
  m.header.nic = nics.target == to.nic ? 0 : static_cast<std::uint8_t>(in + 1);
  e.rank = static_cast<std::uint32_t>(r.place.local);
  e.t = {start, t.slip};
  m.header.nonce = nonce_;
  m.header.start = start;
  m.header.slip_ns = to_ns(t.slip);
  e.message = std::move(m);
  if (start <= now_) return hand_over(cluster_.shards() + e.flow, std::move(e));
  if (f) ++f->actors[e.message.header.actor].unposted;
  schedule(std::move(e));
}

void Shard::no_flow(const RankState& r, const Header& h) {
  fail("rank " + std::to_string(r.id) + " sends to rank " + std::to_string(h.target) +
       " on channel " + std::to_string(h.channel) + " of group " +
       std::to_string(h.group & ~kPointToPoint) +
       ", for which the plan opened no flow; fabric.flows: process needs none");
}

// A step's work on the rank's own buffers; only data is touched, it takes no time.
void Shard::do_locals(Flight& f, std::uint32_t actor) {
  const std::uint32_t element = f.schedule->collective().element_bytes;
  std::vector<Local> locals;
  f.schedule->locals(f.position, static_cast<int>(actor), f.actors[actor].k, locals);
  for (const auto& [from, to, how] : locals) {
    combine(f, data_of(f, to.buffer) + to.offset * element,
            data_of(f, from.buffer) + from.offset * element, from.count, how);
  }
}

// ---- Arriving ----

// From another process. It is there when it arrived, but not before its bytes could have passed the
// NICs at their rate; what the hosts (not the network) made later than that is slip.
void Shard::arrive_from_wire(Message m) {
  const Header& h = m.header;
  if (h.target < 0 || h.target >= workload_.ranks || cluster_.place(h.target).host != host_ ||
      cluster_.place(h.target).shard != index_) {
    return fail("a message for rank " + std::to_string(h.target) + " came to host " +
                std::to_string(host_) +
                ", which does not play it; do all processes run the same job?");
  }
  if (h.nic > cluster_.nics_per_node())
    return fail("a message came for NIC " + std::to_string(h.nic - 1) +
                ", which nodes of this job do not have; do all processes run the same job?");
  const Place& p = cluster_.place(h.target);
  const Picoseconds floor = h.start + nic_.serialise(h.bytes);
  Event e;
  e.t = {floor, static_cast<Picoseconds>(h.slip_ns) * kPicosPerNano};
  if (now_ > floor) {
    const Picoseconds ours = static_cast<Picoseconds>(h.late_ns) * kPicosPerNano + poll_lag_;
    e.t = {now_, e.t.slip + std::min(now_ - floor, ours)};
  }
  e.rank = static_cast<std::uint32_t>(p.local);
  e.through_nic = h.kind == MessageKind::data;
  e.nic = h.nic == 0 ? p.nic : p.node * cluster_.nics_per_node() + h.nic - 1;
  e.message = std::move(m);
  schedule(std::move(e));  // behind what came before it on the same connection
}

Flight* Shard::find_flight(RankState& r, const Header& h) {
  for (Flight* f : r.flights) {
    if (f->sequence == h.sequence && f->group == h.group &&
        (f->peer == kNoRank || f->peer == h.source))
      return f;
  }
  return nullptr;
}

void Shard::arrive(RankState& r, Message m, Moment t) {
  const Header& h = m.header;
  Flight* f = find_flight(r, h);
  if (h.kind == MessageKind::credit) {
    if (f) credit_arrived(r, *f, h, t);  // else: the sender has ended, nobody waits for it
    return;
  }
  if (!f) return push_early(r.early, std::move(m), t);
  const auto actor =
      static_cast<std::uint32_t>(f->schedule->receiver(f->position, h.channel, h.source));
  ActorState& a = f->actors[actor];
  for (int bit = 0; bit < a.step.recv_from.size(); ++bit) {
    if ((a.awaiting >> bit & 1) && a.step.recv_from[bit] == h.source && a.early.head == kNil) {
      accept(r, *f, actor, bit, m, t);
      if (a.awaiting == 0) run_actor(r, *f, actor);
      return;
    }
  }
  push_early(a.early, std::move(m), t);
  if (a.awaiting && take_early(r, *f, actor)) run_actor(r, *f, actor);
}

// The awaited slice from recv_from[bit] is here: combine it and give its slot back to the sender.
void Shard::accept(RankState& r, Flight& f, std::uint32_t actor, int bit, Message& m, Moment t) {
  ActorState& a = f.actors[actor];
  const Block slice = slice_of(a.step.recv, a.step, a.slice);
  const std::uint32_t element = f.schedule->collective().element_bytes;
  const std::uint64_t expected = message_bytes(f.schedule->protocol(), slice.count, element);
  if (m.header.bytes != expected) {
    return fail("rank " + std::to_string(r.id) + " got " + std::to_string(m.header.bytes) +
                " bytes where its schedule " + "expects " + std::to_string(expected) +
                "; do all processes run the same job?");
  }
  if (m.payload && f.work) {  // a fabric that can verify always keeps payload
    const std::byte* from = m.payload.get();
    for_each_place(f, actor, slice, Way::recv, [&](const Block& place) {
      if (place.buffer != Buffer::none) {
        combine(f, data_of(f, place.buffer) + place.offset * element, from, place.count,
                a.step.on_recv);
      }
      from += place.count * element;
    });
  }
  a.ready = later(a.ready, t);
  a.awaiting = static_cast<std::uint8_t>(a.awaiting & ~(1u << bit));
  if (f.schedule->flow().credits > 0) return_credit(r, f, m.header, later(t, f.start));
}

// Accepts what has come before its time; true when nothing more is awaited.
bool Shard::take_early(RankState& r, Flight& f, std::uint32_t actor) {
  ActorState& a = f.actors[actor];
  std::uint32_t before = kNil;
  for (std::uint32_t i = a.early.head; i != kNil && a.awaiting;) {
    EarlyMessage& e = early_[i];
    const std::uint32_t next = e.next;
    int bit = 0;
    while (bit < a.step.recv_from.size() &&
           !((a.awaiting >> bit & 1) && a.step.recv_from[bit] == e.message.header.source)) {
      ++bit;
    }
    if (bit == a.step.recv_from.size()) {
      before = i;
    } else {
      Message m = std::move(e.message);
      const Moment t = e.arrived;
      unlink_early(a.early, before, i);
      accept(r, f, actor, bit, m, t);
    }
    i = next;
  }
  return a.awaiting == 0;
}

// What arrived at the rank before it started this collective now belongs to the collective's
// actors.
void Shard::adopt_early(RankState& r, Flight& f) {
  std::uint32_t before = kNil;
  for (std::uint32_t i = r.early.head; i != kNil;) {
    const std::uint32_t next = early_[i].next;
    const Header& h = early_[i].message.header;
    if (find_flight(r, h) == &f) {
      Message m = std::move(early_[i].message);
      const Moment t = early_[i].arrived;
      unlink_early(r.early, before, i);
      const int actor = f.schedule->receiver(f.position, m.header.channel, m.header.source);
      push_early(f.actors[static_cast<std::size_t>(actor)].early, std::move(m), t);
    } else {
      before = i;
    }
    i = next;
  }
}

void Shard::push_early(EarlyList& list, Message m, Moment t) {
  std::uint32_t i = free_early_;
  if (i == kNil) {
    i = static_cast<std::uint32_t>(early_.size());
    early_.emplace_back();
  } else {
    free_early_ = early_[i].next;
  }
  early_[i] = {std::move(m), t, kNil};
  (list.tail == kNil ? list.head : early_[list.tail].next) = i;
  list.tail = i;
}

void Shard::unlink_early(EarlyList& list, std::uint32_t before, std::uint32_t i) {
  (before == kNil ? list.head : early_[before].next) = early_[i].next;
  if (list.tail == i) list.tail = before;
  early_[i].next = free_early_;
  free_early_ = i;
}

// ---- Credits ----

void Shard::return_credit(RankState& r, Flight& f, const Header& consumed, Moment t) {
  Message m;
  m.header = consumed;
  m.header.kind = MessageKind::credit;
  m.header.bytes = 0;
  m.header.target =
      workload_.groups[f.group & ~kPointToPoint].members[static_cast<std::size_t>(consumed.source)];
  m.header.source = f.position;
  // It takes the way of its data back, which only a real fabric sees.
  const Place& to = cluster_.place(m.header.target);
  NicPair nics{r.place.nic, to.nic};
  if (flows_.carries(r.place, to)) {
    const auto& members = workload_.groups[f.group & ~kPointToPoint].members;
    const NicPair data =
        nics_of(cluster_, *f.schedule, members, consumed.source, f.position, consumed.channel);
    nics = {data.target, data.source};
  }
  route(r, nullptr, std::move(m), t, nics);
}

void Shard::credit_arrived(RankState& r, Flight& f, const Header& h, Moment t) {
  if (h.actor >= static_cast<std::uint32_t>(f.schedule->actors(f.position))) return;
  ActorState& a = f.actors[h.actor];
  for (CreditLine& line : a.credits) {
    if (line.peer != h.source) continue;
    if (line.left++ > 0 || a.k >= a.steps || a.waits || a.awaiting || a.held) return;
    a.ready = later(a.ready, t);
    return run_actor(r, f, h.actor);
  }
}

}  // namespace ghostrank
