// Collectives in flight: actors walk their schedules, slices arrive, are matched and combined, and
// leave. See shard.h. A step receives slice s from all its peers, then sends slice s to all its
// peers.
#include <algorithm>
#include <array>
#include <cstring>

#include "emulator/assert.h"
#include "emulator/shard.h"
#include "emulator/verify.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMaxSamples = 100'000;

std::uint32_t to_ns(Picoseconds t) {
  return static_cast<std::uint32_t>(
      std::min<Picoseconds>(std::max<Picoseconds>(t, 0) / kPicosPerNano, 0xffffffff));
}

// The size that nccl-tests prints for a call.
std::uint64_t buffer_bytes(const Collective& c) { return work_elements(c) * c.element_bytes; }

std::uint64_t salt_of(const Flight& f) {
  return static_cast<std::uint64_t>(f.group) << 32 | f.sequence;
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

}  // namespace

// ---- Life of a flight
// -------------------------------------------------------------------------------------

// Starts a collective, send or recv of rank r; true when it has ended already.
bool Shard::start_flight(RankState& r, std::uint8_t stream, const Op& op) {
  const Seat& seat = cluster_.seat(r.id, op.group);
  GHOSTRANK_ASSERT(seat.group >= 0);
  const auto group = static_cast<std::uint32_t>(seat.group);
  const auto size = static_cast<int>(workload_.groups[group].members.size());
  if (free_flights_.empty()) {
    flights_.push_back(std::make_unique<Flight>());
    free_flights_.push_back(flights_.back().get());
  }
  Flight& f = *free_flights_.back();
  free_flights_.pop_back();
  f.op = &op;
  f.rank = static_cast<std::uint32_t>(r.place.local);
  f.stream = stream;
  f.group = group;
  f.position = seat.position;
  f.peer = kNoRank;
  f.start = f.end = r.streams[stream].now;
  if (op.kind == Op::Kind::collective) {
    f.row = schedules_.row(op.func, op.group);
    f.sequence = r.group_sequence[op.group]++;
    f.schedule = &schedules_.get(group, op);
  } else {
    const bool receives = op.kind == Op::Kind::recv;
    f.row = schedules_.row(Func::send_recv, op.group);
    f.peer = ((f.position + op.peer) % size + size) % size;
    f.group |= kPointToPoint;
    f.sequence = next_of_pair(r, group, f.peer, receives);
    f.transfer =
        std::make_unique<Transfer>(size, op.count, bytes_of(op.dtype),
                                   receives ? f.peer : f.position, receives ? f.position : f.peer);
    f.schedule = f.transfer.get();
  }
  const int actors = f.schedule->actors(f.position);
  f.actors_left = actors;
  if (f.actors.size() < static_cast<std::size_t>(actors))
    f.actors.resize(static_cast<std::size_t>(actors));
  if (verify_) prepare_buffers(f);
  r.flights.push_back(&f);
  for (int i = 0; i < actors; ++i) {
    ActorState& a = f.actors[static_cast<std::size_t>(i)];
    const Actor actor = f.schedule->actor(f.position, i);
    a.k = 0;
    a.steps = actor.steps;
    a.channel = actor.channel;
    a.unposted = 0;
    a.held = false;
    a.ready = f.start;
    a.early = {};
    a.cell = nullptr;
    a.cell_peer = kNoRank;
    a.awaiting = 0;
    a.credits.clear();
    if (a.steps > 0) load_step(f, a);
  }
  adopt_early(r, f);
  f.starting = true;
  for (int i = 0; i < actors; ++i) run_actor(r, f, static_cast<std::uint32_t>(i));
  f.starting = false;
  if (f.actors_left > 0) return false;
  finish_flight(r, f);
  return true;
}

std::uint32_t Shard::next_of_pair(RankState& r, std::uint32_t group, Rank peer, bool receives) {
  for (PairCounter& c : r.pair_sequence) {
    if (c.group == group && c.peer == peer && c.receives == receives) return c.count++;
  }
  r.pair_sequence.push_back({group, peer, receives, 1});
  return 0;
}

void Shard::prepare_buffers(Flight& f) {
  const Collective& c = f.schedule->collective();
  f.work = std::make_unique<std::byte[]>(work_elements(c) * c.element_bytes);
  f.input = std::make_unique<std::byte[]>(input_elements(c) * c.element_bytes);
  fill_buffers(c, f.op->dtype, f.position, salt_of(f), f.work.get(), f.input.get());
}

// All actors have ended: the stream goes on at the end of the last one.
void Shard::finish_flight(RankState& r, Flight& f) {
  const Collective& c = f.schedule->collective();
  const bool bystander =
      f.op->kind == Op::Kind::collective && c.func == Func::send_recv && f.position > 1;
  if (verify_ && f.op->kind != Op::Kind::send && !bystander) {
    const Checked checked = check_buffers(c, f.op->dtype, f.position, salt_of(f), f.work.get());
    stats_.checked += checked.elements;
    stats_.wrong += checked.wrong;
  }
  if (f.position == 0 || f.op->kind == Op::Kind::recv) {
    RowStats& row = stats_.rows[f.row];
    ++row.calls;
    row.bytes += buffer_bytes(c);
    const double took = seconds(f.end.at - f.start.at);
    row.total_seconds += took;
    if (row.seconds.size() < kMaxSamples) row.seconds.push_back(static_cast<float>(took));
  }
  StreamState& s = r.streams[f.stream];
  if (f.stream == 0) (f.peer == kNoRank ? r.exposed : r.bubble) += f.end.at - s.now.at;
  trace(r, f.stream, *f.op, f.start.at, f.end.at);
  s.now = f.end;
  s.phase = StreamState::Phase::ready;
  std::erase(r.flights, &f);
  f.transfer.reset();
  f.work.reset();
  f.input.reset();
  free_flights_.push_back(&f);
}

// ---- Actors
// -----------------------------------------------------------------------------------------------

void Shard::load_step(Flight& f, ActorState& a) {
  const auto index = static_cast<int>(&a - f.actors.data());
  a.step = f.schedule->step(f.position, index, a.k);
  a.slice = 0;
  a.awaiting = static_cast<std::uint8_t>((1u << a.step.recv_from.size()) - 1);
}

// Walks as far as it can: until something has not arrived, a credit is missing, or a full fabric
// holds it.
void Shard::run_actor(RankState& r, Flight& f, std::uint32_t actor) {
  ActorState& a = f.actors[actor];
  for (; a.k < a.steps; ++a.k, a.k < a.steps ? load_step(f, a) : void()) {
    while (a.slice < a.step.slices) {
      if (a.awaiting && !take_early(r, f, actor)) return;
      a.held = a.unposted > 0;
      if (a.held || !take_credit(f, a)) return;
      if (!a.step.send_to.empty()) {
        const Block slice = slice_of(a.step.send, a.step, a.slice);
        for (Rank peer : a.step.send_to) send_slice(r, f, actor, peer, slice);
      }
      ++a.slice;
      a.awaiting = static_cast<std::uint8_t>((1u << a.step.recv_from.size()) - 1);
    }
  }
  a.awaiting = 0;
  a.held = a.unposted > 0;
  if (a.held) return;
  f.end = later(f.end, a.ready);
  if (--f.actors_left > 0 || f.starting) return;
  finish_flight(r, f);
  advance(r);
}

// A message of this actor that a full fabric had not taken has left.
void Shard::posted(Flight& f, std::uint32_t actor) {
  ActorState& a = f.actors[actor];
  if (--a.unposted == 0 && a.held) run_actor(ranks_[f.rank], f, actor);
}

// Takes one credit of every peer of the step, or none.
bool Shard::take_credit(Flight& f, ActorState& a) {
  const std::uint32_t limit = f.schedule->flow().credits;
  if (limit == 0) return true;
  a.credits.reserve(a.credits.size() + kMaxPeers);  // keeps the pointers below valid
  std::array<CreditLine*, kMaxPeers> lines{};
  std::size_t n = 0;
  for (Rank peer : a.step.send_to) {
    auto line = std::find_if(a.credits.begin(), a.credits.end(),
                             [&](const CreditLine& c) { return c.peer == peer; });
    if (line == a.credits.end()) {
      line = a.credits.insert(a.credits.end(), {peer, limit});
    }
    if (line->left == 0) return false;
    lines[n++] = &*line;
  }
  for (std::size_t i = 0; i < n; ++i) --lines[i]->left;
  return true;
}

// ---- Sending
// ----------------------------------------------------------------------------------------------

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
  if (verify_ && slice.count > 0) {
    m.payload = std::make_unique<std::byte[]>(m.header.bytes);
    std::byte* to = m.payload.get();
    for_each_place(f, actor, slice, Way::send, [&](const Block& place) {
      const auto& from = place.buffer == Buffer::work ? f.work : f.input;
      if (place.buffer != Buffer::none)
        std::memcpy(to, from.get() + place.offset * element, place.count * element);
      to += place.count * element;
    });
  }
  const Place& to = cluster_.place(m.header.target);
  ++stats_.messages;
  if (to.node == r.place.node) {
    ledger_.add_intra(m.header.bytes);
  } else {
    if (a.cell_peer != peer || a.cell_generation != ledger_.generation()) {
      a.cell = &ledger_.cell({r.place.nic, to.nic, f.row});
      a.cell_peer = peer;
      a.cell_generation = ledger_.generation();
    }
    a.cell->bytes += m.header.bytes;
    ++a.cell->messages;
  }
  route(r, &f, std::move(m), a.ready);
}

// Puts a message on its way at `t`: over NVLink inside the node, through the modelled NICs inside
// this process, or through the fabric when the egress has its turn.
void Shard::route(RankState& r, Flight* f, Message m, Moment t) {
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
      credit ? t.at : nics_[static_cast<std::size_t>(r.place.nic)].take_egress(t.at, d);
  if (to.host == host_) {
    e.t = {start + d + nic_.latency, t.slip};
    if (reanchor_ && now_ > e.t.at)
      e.t = {now_, t.slip + (now_ - e.t.at)};  // not there before it was handed over
    e.through_nic = !credit;
    if (copy_payload_) {
      for (std::uint64_t left = m.header.bytes; left > 0;) {
        const std::uint64_t n = std::min<std::uint64_t>(left, scratch_.size() / 2);
        std::memcpy(scratch_.data(), scratch_.data() + scratch_.size() / 2, n);
        left -= n;
      }
    }
    e.message = std::move(m);
    if (to.shard == index_) return schedule(std::move(e));
    return hand_over(to.host * cluster_.shards() + to.shard, std::move(e));
  }
  e.kind = Event::Kind::post;
  e.rank = static_cast<std::uint32_t>(r.place.local);
  e.t = {start, t.slip};
  m.header.nonce = nonce_;
  m.header.start = start;
  m.header.slip_ns = to_ns(t.slip);
  e.message = std::move(m);
  if (start <= now_) return hand_over(to.host * cluster_.shards() + to.shard, std::move(e));
  if (f) ++f->actors[e.message.header.actor].unposted;
  schedule(std::move(e));
}

// ---- Arriving
// ---------------------------------------------------------------------------------------------

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
  if (m.payload) {
    const std::byte* from = m.payload.get();
    for_each_place(f, actor, slice, Way::recv, [&](const Block& place) {
      std::byte* into = f.work.get() + place.offset * element;
      if (place.buffer == Buffer::none) {
        // Nobody reads it.
      } else if (a.step.on_recv == Combine::reduce) {
        add_elements(f.op->dtype, into, from, place.count);
      } else {
        std::memcpy(into, from, place.count * element);
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

// ---- Credits
// ----------------------------------------------------------------------------------------------

void Shard::return_credit(RankState& r, Flight& f, const Header& consumed, Moment t) {
  Message m;
  m.header = consumed;
  m.header.kind = MessageKind::credit;
  m.header.bytes = 0;
  m.header.target =
      workload_.groups[f.group & ~kPointToPoint].members[static_cast<std::size_t>(consumed.source)];
  m.header.source = f.position;
  route(r, nullptr, std::move(m), t);
}

void Shard::credit_arrived(RankState& r, Flight& f, const Header& h, Moment t) {
  if (h.actor >= static_cast<std::uint32_t>(f.schedule->actors(f.position))) return;
  ActorState& a = f.actors[h.actor];
  for (CreditLine& line : a.credits) {
    if (line.peer != h.source) continue;
    if (line.left++ > 0 || a.k >= a.steps || a.awaiting || a.held) return;
    a.ready = later(a.ready, t);
    return run_actor(r, f, h.actor);
  }
}

}  // namespace ghostrank
