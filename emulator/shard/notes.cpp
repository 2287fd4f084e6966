// How notes of agents leave and arrive: inside a node over NVLink; between nodes through the
// modelled NICs; to other processes as messages of the fabric or as packets, paced by the modelled
// NIC. See shard.h and agents/agent_runner.h.
//
// Where the network is modelled, a note to many takes its sender's NIC once, because the network
// copies it; a real network gets one message per receiver. The ledger counts one per receiver in
// both.
#include <algorithm>
#include <bit>
#include <cstring>

#include "collectives/wire_format.h"
#include "emulator/shard/inline.h"
#include "emulator/shard/ranks/carried.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostWaitingNotes = 1024;  // per flow or packet flow; then has_room() says no

// Bit 15 of a note's `channel`: the sender had real elements. Without it the payload holds zeros in
// their place, which nobody may take for data. Bit 14, in events alone: `held` has the words.
constexpr unsigned kHasContent = 0x8000, kHoldsWords = 0x4000;

// The tag, the type of the elements and kHasContent, as a header's `channel`.
std::uint16_t packed(const Note& note) {
  return static_cast<std::uint16_t>(note.tag | static_cast<unsigned>(note.type) << 8 |
                                    (note.content.empty() ? 0U : kHasContent));
}
DataType type_of(unsigned channel) { return static_cast<DataType>((channel & ~kHasContent) >> 8); }

// Encodes a note in the scheme's own format.
Payload encoded(const Note& note, std::uint64_t bytes, const WireFormat& format) {
  Payload payload = std::make_unique<std::byte[]>(bytes);  // zeros
  format.encode(note, {payload.get(), bytes});
  return payload;
}

}  // namespace

// Returns words and content in a buffer of `bytes` bytes: between processes as long as the note on
// the wire. Null: the note has neither, so its payload is synthetic.
Payload Shard::payload_of(const Note& note, std::uint64_t bytes) {
  if (note.words.empty() && note.content.empty()) return nullptr;
  Payload payload = std::make_unique<std::byte[]>(bytes);
  std::byte* to = std::copy(note.words.begin(), note.words.end(), payload.get());
  std::copy(note.content.begin(), note.content.end(), to);
  return payload;
}

bool Shard::has_room(const LeavingNote& note) const {
  const SchemeUse& use = cluster_.schemes()[note.sender.scheme];
  for (const GroupParty to : note.to) {
    const int outbox = outbox_of(note, cluster_.world_party(use, to));
    if (outbox < 0) continue;
    if (outboxes_.load(outbox) >= kMostWaitingNotes) return false;
  }
  return true;
}

// Returns the outbox of a note to party `to`; -1: the note stays in the process, or the plan
// opened no flow (for a packet: no packet flow) for it.
int Shard::outbox_of(const LeavingNote& note, WorldParty to) const {
  const auto flows = static_cast<int>(flows_.of(host_, index_).size());
  if (cluster_.outside(to))
    return cluster_.shards() + flows * (packets_ ? 2 : 1) +
           switch_flow_[note.sender.scheme][note.position];
  const Location &here = cluster_.location(note.party), &there = cluster_.location(to);
  if (!flows_.carries(here, there)) return -1;
  Header h;
  h.group = note.sender.scheme | kSchemeFlows;
  h.kind = MessageKind::note;
  const int flow = flows_.index_of(note.party, to, h, {here.nic, there.nic});
  if (flow < 0 || note.carriage == Carriage::reliable)
    return flow < 0 ? -1 : cluster_.shards() + flow;
  return packets_ ? cluster_.shards() + flows + flow : -1;
}

bool Shard::carry(const LeavingNote& note) {
  if (wired_ && !has_room(note)) return false;
  const SchemeUse& use = cluster_.schemes()[note.sender.scheme];
  NoteOnWay way;
  stats_.messages += note.to.size();
  for (const GroupParty receiver : note.to) {
    const WorldParty party = cluster_.world_party(use, receiver);
    const Location& to = cluster_.location(party);
    if (to.node == note.from.node) {
      pass_note_inside(note, way, to);
      continue;
    }
    const bool wire = cluster_.outside(party) || flows_.carries(note.from, to);
    agents_.count(note.row, receiver, note.bytes);
    if (wire || way.started.at == kNotYet) start_note(note, way);
    if (note.carriage == Carriage::packet)
      pass_as_packet(note, way, party, wire);
    else
      pass_note(note, way, party, wire, 0);
  }
  return true;
}

void Shard::pass_note_inside(const LeavingNote& note, NoteOnWay& way, const Location& to) {
  ledger_.add_intra(scheme_row_[note.sender.scheme], {note.bytes, 1});
  Moment t = note.ready;
  if (const int link = gpu_links_.between(note.party, ranks_[to.local].party); link >= 0) {
    const LinkSpeed& speed = gpu_links_.speed(link);
    const Picoseconds takes = speed.serialise(note.bytes);
    t = gpu_links_.take(link, t, takes);
    t.at += takes + speed.latency;
    return deliver_note(note, to, t, Event::Kind::arrival, way.payload);
  }
  const Picoseconds duration = intra_.serialise(note.bytes);
  if (intra_.limited()) t = ranks_[note.sender.local].nvlink.take_egress(t, duration);
  t.at += duration + intra_.latency;
  deliver_note(note, to, t, intra_.limited() ? Event::Kind::nvlink : Event::Kind::arrival,
               way.payload);
}

// Takes the sender's NIC.
void Shard::start_note(const LeavingNote& note, NoteOnWay& way) {
  const Nic nic = note.from.nic;
  const LinkSpeed& speed = cluster_.topology().nic(nic);
  Port& port = nics_[nic];
  way.duration = rates_ ? time_at_nic(nic, later(note.ready, port.egress_free).at, note.bytes)
                        : speed.serialise(note.bytes);
  way.started = speed.limited() ? port.take_egress(note.ready, way.duration) : note.ready;
}

// Passes a copy of the note on from its sender's NIC. `late`: how much later than it could.
void Shard::pass_note(const LeavingNote& note, NoteOnWay& way, WorldParty party, bool wire,
                      Picoseconds late) {
  const Topology& topology = cluster_.topology();
  const Moment start{way.started.at + late, way.started.slip};
  if (wire) {  // a switch outside ghostrank has a packet only with its last byte
    const Picoseconds end = cluster_.outside(party) ? way.duration : 0;
    return note_to_process(note, party, {start.at + end, start.slip});
  }
  const Location& to = cluster_.location(party);
  const Picoseconds latency = topology.latency(note.from.nic, to.nic);
  // The slower of the two NICs sets at each time how fast its bytes pass.
  const LinkSpeed& into = topology.nic(to.nic);
  const NicPair nics{note.from.nic, to.nic};
  const Picoseconds behind = rates_ || &into != &topology.nic(note.from.nic)
                                 ? time_between(nics, latency, way.started.at, note.bytes)
                                 : way.duration;
  stats_.packets.received += note.carriage == Carriage::packet;
  if (topology.links() > 0 && topology.paths(note.from.nic, to.nic) > 0)
    return note_by_links(note, way.tree, party, start, behind);
  Moment t{start.at + behind + latency, start.slip};
  if (note.carriage == Carriage::reliable && may_overtake(note.from.nic, to.nic))
    t.at = note_order_.in(note.from.nic, to.nic, t.at, start.at);
  if (reanchor_ && now_ > t.at) t = {now_, t.slip + (now_ - t.at)};
  deliver_note(note, to, t, into.limited() ? Event::Kind::ingress : Event::Kind::arrival,
               way.payload);
}

// Whether the receiver's NIC may take longer for a note than the sender's.
bool Shard::may_overtake(Nic from, Nic to) const {
  const Topology& topology = cluster_.topology();
  return rates_ || topology.nic(to).ps_per_byte > topology.nic(from).ps_per_byte;
}

void Shard::pass_as_packet(const LeavingNote& note, NoteOnWay& way, WorldParty party, bool wire) {
  ++stats_.packets.sent;
  const Picoseconds latency =
      cluster_.topology().latency(note.from.nic, cluster_.location(party).nic);
  for (const Picoseconds late :
       misfortune_.next(note.party, party, note.note, latency, stats_.packets))
    if (late != Misfortune::kLost) pass_note(note, way, party, wire, late);
}

void Shard::enter(const AgentAddress& sender, GroupParty receiver, const LedgerCell& notes) {
  const WorldParty to = cluster_.world_party(cluster_.schemes()[sender.scheme], receiver);
  ledger_.add({own_nic_[sender.local], cluster_.location(to).nic, scheme_row_[sender.scheme]},
              notes);
}

// Sets the fields of an event that describe its note: all but time, target, kind and payload.
void Shard::describe(const LeavingNote& note, Event& e) {
  e.flight = nullptr;
  e.set_size(note.bytes, static_cast<std::uint16_t>(note.note.words.size()));
  e.group = note.sender.scheme;
  e.sequence = note.note.call;
  e.source = note.position;
  e.actor = note.note.index;
  e.channel = packed(note.note);
  e.via = 0;
}

// Real time asks whether notes are under way; virtual time ends when no event is left.
void Shard::count_open_notes(std::int64_t more) {
  if (!virtual_) shared_->notes_open.fetch_add(more, std::memory_order_relaxed);
}

// Delivers a note within the process, to this shard or another one. `payload`: in note_payloads_,
// once a receiver on this shard needed it. Few words need no payload.
void Shard::deliver_note(const LeavingNote& note, const Location& to, const Moment& at,
                         Event::Kind kind, std::uint32_t& payload) {
  count_open_notes(1);
  const std::size_t words = note.note.words.size(), bytes = words + note.note.content.size();
  if (to.shard != index_) {
    Parcel p{.message = {{}, payload_of(note.note, bytes)}};
    describe(note, p.event);
    p.event.t = at;
    p.event.rank = to.local;
    p.event.set_kind(kind, MessageKind::note);
    return hand_over(to.shard, std::move(p));
  }
  std::uint32_t held = kNil;
  unsigned marks = 0;
  if (bytes > 0 && bytes == words && words <= sizeof held) {
    std::memcpy(&held, note.note.words.data(), words);
    marks = kHoldsWords;
  } else if (bytes > 0) {
    if (payload == kNil) payload = note_payloads_.put(note.note.words, note.note.content);
    note_payloads_.share(payload);
    held = payload | kSharedPayload;
  }
  // Notes that a party sends through its NIC nearly always arrive in the order of sending.
  Event& e = schedule_from(note.sender.local, kind, at, to.local);
  describe(note, e);
  e.channel = static_cast<std::uint16_t>(e.channel | marks);
  e.held = held;
}

void Shard::note_to_process(const LeavingNote& note, WorldParty party, const Moment& start) {
  const int outbox = outbox_of(note, party);
  const bool packet = note.carriage == Carriage::packet;
  if (outbox < 0)
    return fail("party " + to_string(note.party) + " sends a " + (packet ? "packet" : "note") +
                " to party " + to_string(party) + ", for which the plan opened no " +
                (packet ? "packet flow" : "flow") + ": Ends::traffic() of " +
                std::string(cluster_.schemes()[note.sender.scheme].name) + " does not list " +
                (packet ? "any" : "it"));
  if (!packet && cluster_.outside(party))
    return fail("party " + to_string(note.party) +
                " sends a switch outside ghostrank a reliable note; it gets packets only");
  Parcel p{.message = {.header = {.nonce = nonce_,
                                  .group = note.sender.scheme,
                                  .source = note.position,
                                  .target = party.value(),
                                  .kind = MessageKind::note,
                                  .bytes = note.bytes & kMostBytes,
                                  .start = start.at,
                                  .slip_ns = to_ns(start.slip),
                                  .offset = packet ? segment_.number : 0}},
           .flow = outbox - cluster_.shards(),
           .nic = cluster_.location(note.party).nic};
  Header& h = p.message.header;
  h.actor = note.note.index;
  const WireFormat* format = cluster_.schemes()[note.sender.scheme].ends->wire_format();
  if (packet && format) {
    h.number = static_cast<std::uint16_t>(note.bytes);  // the whole payload is real
    p.message.payload = encoded(note.note, note.bytes, *format);
  } else {
    h.sequence = note.note.call;
    h.channel = packed(note.note);
    h.number = static_cast<std::uint16_t>(note.note.words.size());
    p.message.payload = payload_of(note.note, note.bytes);
  }
  p.event.kind = Event::Kind::post;
  p.event.t = start;
  p.event.rank = note.sender.local;
  if (packet) {  // counts as open in this process until it leaves
    p.event.message = MessageKind::note;
    count_open_notes(1);
  } else {
    shared_->notes_sent.fetch_add(1, std::memory_order_relaxed);
  }
  if (start.at <= now_ && !outboxes_.has_turns(outbox)) return hand_over(outbox, std::move(p));
  outboxes_.add_turn(outbox, false);
  Event e = p.event;
  e.held = held_.put(std::move(p));
  schedule(e);
}

// Returns false when there is no room; the caller keeps the datagram.
bool Shard::try_send_packet(Packets& packets, int flow, Message& message) {
  if (!packets.try_send(flow, message)) return false;
  shared_->packets_sent.fetch_add(1, std::memory_order_relaxed);
  count_open_notes(-1);
  return true;
}

// Takes arrived packets. Counts as stray a packet of an earlier segment, or one that does not fit
// the job; ignores late hellos of the set-up. A switch outside ghostrank knows no segments;
// from_switch() counts its packets.
bool Shard::take_packets(Packets& packets, bool of_switch) {
  packets.poll(arrived_);
  if (!packets.failure().empty()) fail(packets.failure(), true);
  const bool any = !arrived_.empty();
  if (any) now_ = clock_.now();
  for (Message& m : arrived_) {
    if (m.header.kind != MessageKind::note) continue;
    if ((!of_switch && m.header.offset != segment_.number) || !read_format(m) ||
        !belongs_here(m.header)) {
      ++stats_.packets.strays;
      continue;
    }
    shared_->packets_received.fetch_add(1, std::memory_order_relaxed);
    if (of_switch) {
      from_switch(std::move(m));
      continue;
    }
    ++stats_.packets.received;
    schedule_note(std::move(m), Carriage::packet);
  }
  arrived_.clear();
  return any;
}

// Takes a packet of a switch outside ghostrank. Such a switch does not know fabric.packets, so the
// packets that it sends are lost, doubled or delayed on arrival.
void Shard::from_switch(Message m) {
  Header& h = m.header;
  const SchemeUse& use = cluster_.schemes()[h.group];
  const WorldParty sender = cluster_.world_party(use, h.source), receiver(h.target);
  const Nic nic = cluster_.location(receiver).nic, switch_nic = cluster_.location(sender).nic;
  h.start = now_;  // its bytes have yet to pass the NIC
  h.slip_ns = to_ns(
      switch_slips_.answered(h.group, nic.value() % cluster_.nics_per_node(), h.actor) + poll_lag_);
  ++stats_.messages;
  ledger_.add({switch_nic, nic, scheme_row_[h.group]}, {h.bytes, 1});
  const Note packet{.tag = static_cast<std::uint8_t>(h.channel & 0xff),
                    .call = h.sequence,
                    .index = h.actor,
                    .words = {m.payload.get(), h.number}};
  const Picoseconds latency = cluster_.topology().latency(switch_nic, nic);
  const auto [first, second] = misfortune_.next(sender, receiver, packet, latency, stats_.packets);
  const auto pass = [&](Picoseconds late, Message&& copy) {
    if (late == Misfortune::kLost) return;
    ++stats_.packets.received;
    unanswered_.answered(copy.header.group, receiver, copy.header.actor);
    copy.header.start += late;
    schedule_note(std::move(copy), Carriage::packet);
  };
  if (second != Misfortune::kLost) {
    Message copy{h, nullptr};
    if (m.payload) {
      copy.payload = std::make_unique<std::byte[]>(h.bytes);
      std::copy_n(m.payload.get(), h.bytes, copy.payload.get());
    }
    pass(second, std::move(copy));
  }
  pass(first, std::move(m));
}

// Decodes a packet in its scheme's own format into the header's fields. Returns false when it does
// not have that format.
bool Shard::read_format(Message& m) const {
  Header& h = m.header;
  if (h.group >= cluster_.schemes().size()) return false;
  const Ends& ends = *cluster_.schemes()[h.group].ends;
  if (!ends.wire_format()) return true;
  if (!m.payload || h.number != h.bytes) return false;  // else only `number` bytes were kept
  std::vector<std::byte> store;
  const std::optional<Note> note = ends.wire_format()->decode({m.payload.get(), h.bytes}, store);
  if (!note || !malformed(*note, h.bytes, ends.overhead_bytes()).empty()) return false;
  h.sequence = note->call;
  h.actor = note->index;
  h.channel = packed(*note);
  h.number = static_cast<std::uint16_t>(note->words.size());
  m.payload = payload_of(*note, h.bytes);
  return true;
}

// Adds the network's own packet counts of this segment to the statistics.
void Shard::count_packets(const Packets& packets, const PacketStats& before) {
  const PacketStats now = packets.stats();
  stats_.packets.strays += now.strays - before.strays;
  stats_.packets.refused += now.refused - before.refused;
  if (now.dropped && before.dropped)
    stats_.packets.dropped += *now.dropped - *before.dropped;
  else
    ++stats_.packets.unreadable;
}

// Returns whether a note from another process belongs to this job and to a party of this shard.
bool Shard::belongs_here(const Header& h) const {
  const bool known = h.group < cluster_.schemes().size() && h.target >= 0 &&
                     h.target < cluster_.parties() && h.source >= 0 &&
                     cluster_.location(WorldParty(h.target)).host == host_ &&
                     cluster_.location(WorldParty(h.target)).shard == index_ &&
                     static_cast<int>(type_of(h.channel)) < kDataTypes;
  if (!known) return false;
  const SchemeUse& use = cluster_.schemes()[h.group];
  return h.source < use.ends->size() + static_cast<GroupParty>(use.helpers.size()) &&
         h.number + use.ends->overhead_bytes() <= h.bytes;
}

// Takes a note that came as a message of the fabric. A note that does not fit the job ends the run,
// as a schedule's message does.
void Shard::note_from_wire(Message m) {
  const Header& h = m.header;
  if (!belongs_here(h)) {
    return fail("a note of scheme " + std::to_string(h.group) + " for party " +
                std::to_string(h.target) + " came to host " + to_string(host_) +
                ", where this job has no such; do all processes run the same job?");
  }
  shared_->notes_received.fetch_add(1, std::memory_order_relaxed);
  schedule_note(std::move(m), Carriage::reliable);
}

// Schedules a note that came from another process.
void Shard::schedule_note(Message m, Carriage carriage) {
  const Header& h = m.header;
  count_open_notes(1);
  const Location& to = cluster_.location(WorldParty(h.target));
  const WorldParty sender = cluster_.world_party(cluster_.schemes()[h.group], h.source);
  const NicPair nics{cluster_.location(sender).nic, to.nic};
  const Picoseconds floor = h.start + time_between(nics, 0, h.start, h.bytes);
  Event e = event_from_wire(h, floor, now_, poll_lag_);
  if (carriage == Carriage::reliable && may_overtake(nics.source, nics.target))
    e.t.at = note_order_.in(nics.source, nics.target, e.t.at, now_);
  e.kind = cluster_.topology().nic(to.nic).limited() ? Event::Kind::ingress : Event::Kind::arrival;
  e.rank = to.local;
  e.held = m.payload ? held_.put(Parcel{.message = std::move(m)}) : kNil;
  schedule(e);
}

void Shard::note_arrived(const Event& e) {
  Note note;
  note.tag = static_cast<std::uint8_t>(e.channel & 0xff);
  note.type = type_of(e.channel & ~kHoldsWords);
  note.call = e.sequence;
  note.index = e.actor;
  const std::uint64_t content = e.bytes() - agents_.overhead(e.group) - e.number();
  note.elements = content >> std::countr_zero(bytes_of(note.type));
  count_open_notes(-1);
  const AgentAddress who{e.rank, e.group};
  if (e.held == kNil && (e.channel & kHoldsWords) == 0)
    return agents_.on_note(who, e.source, note, e.t);
  if (e.channel & kHoldsWords) {
    const std::uint32_t held = e.held;
    note.words = std::as_bytes(std::span(&held, 1)).first(e.number());
    return agents_.on_note(who, e.source, note, e.t);
  }
  const bool shares = (e.held & kSharedPayload) != 0;
  const Payload own = shares ? nullptr : held_.take(e.held).message.payload;
  const std::byte* const payload = shares ? note_payloads_.at(e.held & ~kSharedPayload) : own.get();
  if (payload) {
    note.words = {payload, e.number()};
    if (segment_.verify && (e.channel & kHasContent) != 0)
      note.content = {payload + e.number(), content};
  }
  agents_.on_note(who, e.source, note, e.t);
  if (shares) note_payloads_.drop(e.held & ~kSharedPayload);
}

// Prefetches for the next two notes: for the second one its receiver, and for the next one, whose
// receiver is cached by then, the data to which that receiver points. Not for helpers that take all
// queued notes in one go, because their data stays cached.
void Shard::prefetch_notes(const Event& next, std::uint32_t second) const {
  if (second != kNil && !backlogs_.runs_ahead(second)) {
    agents_.expect_party(second);
    timers_.prefetch_source(second);
  }
  if (backlogs_.runs_ahead(next.rank)) return;
  if (next.held != kNil && (next.channel & kHoldsWords) == 0 && (next.held & kSharedPayload) != 0)
    note_payloads_.prefetch(next.held & ~kSharedPayload);
  const Port* const port = &nics_[own_nic_[next.rank]];
  __builtin_prefetch(port, 1);
  __builtin_prefetch(&port->queued_until, 1);  // it may be on the next cache line
  agents_.expect_note({next.rank, next.group}, next.source, next.sequence, next.actor);
  timers_.prefetch_tail(next.rank);
}

void Shard::wake(AgentAddress who, std::uint32_t timer, std::uint64_t armed, Moment at) {
  backlogs_.armed(who.local, at.at);
  Event& e = schedule(Event::Kind::timer, at, who.local);
  e.flight = nullptr;
  e.group = who.scheme;
  e.sequence = timer;
  e.set_size(armed, 0);
  e.held = kNil;
}

void Shard::trace_stage(const Flight& flight, std::uint32_t part, Stage stage, Moment from,
                        Moment to) {
  Span* const span = to.at > from.at ? spans_.add() : nullptr;
  if (!span) return;
  const RankState& r = ranks_[flight.rank];
  span->rank = r.id();
  span->host = host_;
  span->stream = flight.stream;
  span->kind = 4;
  span->label = name_of(stage);
  span->start = from.at;
  span->duration = to.at - from.at;
  span->call = program_of(r, r.streams[flight.stream]).labels[flight.op->label];
  span->part = part;
}

// Ends a call at `at`. Prefetches its flight, which is likely no longer cached.
void Shard::end_call(std::uint32_t local, Flight& flight, Moment at) {
  for (std::size_t line = 0; line < sizeof(Flight); line += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(&flight) + line, 1);
  schedule(Event::Kind::call_done, at, local).flight = &flight;
}

}  // namespace ghostrank
