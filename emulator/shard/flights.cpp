// Collectives in flight and their actors. An actor walks its schedule: in a step it receives slice
// s from all its peers, then sends slice s to all its peers. See shard.h; messages are in
// shard/messages.cpp.
#include <algorithm>
#include <bit>
#include <optional>

#include "emulator/shard/inline.h"
#include "emulator/shard/ranks/carried.h"
#include "emulator/verify/call_content.h"
#include "emulator/verify/values.h"
#include "switch/assert.h"

namespace ghostrank {
namespace {

const Step kNoStep{};

std::uint64_t salt_of(const Flight& f) {
  return static_cast<std::uint64_t>(f.group) << 32 | f.sequence;
}

}  // namespace

// ---- Life of a flight ----

// Starts a collective, send or recv of rank r on one of its streams.
Shard::Started Shard::start_flight(RankState& r, std::uint8_t stream, const Op& op) {
  const Membership& membership = cluster_.membership(r.id(), op.group);
  GHOSTRANK_ASSERT(membership.taken());
  const std::uint32_t group = membership.group;
  const auto size = static_cast<int>(workload_.groups[group].members.size());
  Flight& f = flights_.take();
  f.op = &op;
  f.rank = r.local;
  f.stream = stream;
  f.at = r.streams[stream].pc - 1;
  f.group = group;
  f.position = membership.position;
  f.peer = kNoRank;
  f.whole = Flight::Whole::no;
  f.by_agents = false;
  f.playing = 0;
  const Step* steps = nullptr;  // this rank's, in the schedule's step table; null: none is kept
  StreamState& s = r.streams[stream];
  f.start = f.end = s.now;
  if (first_sends_) busy_with_others_ += first_sends_->leaves(group);
  f.slot = 0;
  if (s.at_once > 1 || op.launch != 0) {
    f.slot = static_cast<std::uint8_t>(std::countr_one(s.busy_slots));
    s.busy_slots |= std::uint64_t{1} << f.slot;
  }
  if (op.kind == Op::Kind::collective) {
    const Schedules::Play& play = play_of(group, op);
    f.row = play.row;
    f.sequence = sequences_[r.local * workload_.group_names.size() + op.group]++;
    f.schedule = play.schedule.get();
    if (play.scheme) {
      begin_agents(r, f, play);
      return Started::busy;
    }
    if (model_nodes_ && !segment_.verify && size > 1 && cluster_.inside_node(group) &&
        !f.schedule->flow_control().posting.needed()) {
      meet_in_node(r, f);
      return Started::busy;
    }
    if (fluids_ && size > 1 && !cluster_.inside_node(group)) {
      meet_as_fluid(r, f);
      return Started::busy;
    }
    steps = schedules_.steps(play, f.position);
  } else {
    const bool receives = op.kind == Op::Kind::recv;
    f.peer = ((f.position + op.peer) % size + size) % size;
    const GroupRank source = receives ? f.peer : f.position,
                    target = receives ? f.position : f.peer;
    f.row = schedules_.transfer_row(op.group);
    f.group |= kPointToPoint;
    PairCounter& pair = pair_of(r, group, f.peer, receives);
    f.sequence = transfer_sequence(pair.count++, source, target);
    if (TransferEnds* const ends = at_lone_ports(pair, source, target)) {
      meet_at_lone_ports(r, f, *ends);
      return Started::busy;
    }
    if (fluids_ && (pair.ends != kNil || between_nodes(group, source, target))) {
      transfer_as_fluid(r, f, pair);
      return Started::busy;
    }
    f.transfer = schedules_.transfer(group, op, source, target);
    f.schedule = f.transfer.get();
  }
  if (segment_.verify)
    f.data = std::make_unique<RankData>(*f.schedule, op.dtype, f.position, salt_of(f), spare_,
                                        content_of(spec_, workload_, op, group, iteration_of(r, s),
                                                   f.schedule->collective(), states_));
  r.flights.append(&f);
  return start_actors(r, f, steps);
}

// Puts all actors at their first steps, then queues those that wait for no other actor; actors that
// wait are woken by the one they wait for. Those of a launch are queued by start_launch(). `steps`:
// this rank's in the step table; null: none is kept.
Shard::Started Shard::start_actors(RankState& r, Flight& f, const Step* steps) {
  const int actors = f.schedule->actors(f.position);
  f.actors_left = actors;
  f.playing = static_cast<std::uint32_t>(actors);
  f.lone = actors == 1 && !f.schedule->flow_control().posting.needed();
  f.waiting = 0;
  if (f.actors.size() < static_cast<std::size_t>(actors)) f.actors.resize(actors);
  f.kept = steps != nullptr;
  for (int i = 0; i < actors; ++i) begin_actor(f, i, steps);
  adopt_early(r, f);
  if (actors == 0) {
    finish_flight(r, f);
    return Started::ended;
  }
  if (f.op->launch != 0) return Started::busy;
  StreamState& s = r.streams[f.stream];
  if (s.at_once == 1) s.phase = StreamState::Phase::busy;
  ready_.push_rank_again(r.local, f.stream);
  for (std::uint32_t i = static_cast<std::uint32_t>(actors); i-- > 0;) {
    if (!f.actors[i].waits) ready_.push(Ready::What::actor, f, i);
  }
  return Started::in_queue;
}

// Hands the call to the rank's agent, which ends it.
void Shard::begin_agents(RankState& r, Flight& f, const Schedules::Play& play) {
  f.by_agents = true;
  f.actors_left = 0;
  f.next_member = nullptr;
  const Collective& c = f.schedule->collective();
  CallContent content =
      content_of(spec_, workload_, *f.op, f.group, iteration_of(r, r.streams[f.stream]), c,
                 segment_.verify ? states_ : nullptr);
  const auto scheme = static_cast<std::uint32_t>(cluster_.scheme(f.group, *play.scheme));
  if (segment_.verify) {
    const Ends& ends = *cluster_.schemes()[scheme].ends;
    const double bound = ends.error_bound({0, c, f.op->dtype}, kLargestValue);
    content.expected = agents_.expected(scheme, {0, c, f.op->dtype, {}, f.op->tensor});
    f.data = std::make_unique<RankData>(*f.schedule, f.op->dtype, f.position, salt_of(f), spare_,
                                        content, bound);
  }
  r.flights.append(&f);
  agents_.on_call({r.local, scheme}, c, f.op->dtype, f.op->tensor, content.tensor, f, f.data.get(),
                  f.start);
}

// Puts actor `index` at its first step. `steps`: its steps in the step table (null: none is kept);
// advanced to the next actor's.
void Shard::begin_actor(Flight& f, int index, const Step*& steps) {
  ActorState& a = f.actors[index];
  const Actor actor = f.schedule->actor(f.position, index);
  const FlowControl flow = f.schedule->flow_control();
  a.k = 0;
  a.steps = actor.steps;
  a.channel = static_cast<std::uint16_t>(actor.channel);
  a.unposted = 0;
  a.held = a.waits = false;
  a.ready = f.start;
  a.early = {};
  a.route = {};
  a.awaiting = 0;
  a.heard = 0;
  if (flow.credits == 0 && !flow.posting.needed()) {
    a.credits.reset();
  } else if (!a.credits) {
    a.credits = std::make_unique<Credits>();
  } else {
    a.credits->lines.clear();
    a.credits->back = {};
    a.credits->posted = 0;
  }
  a.step = &kNoStep;
  if (a.steps == 0) return;
  if (steps) {
    a.step = steps;
    steps += a.steps;
  } else {
    if (!a.own) a.own = std::make_unique<Step>();
    a.step = a.own.get();
  }
  load_step(f, a);
}

// The schedule of a collective of a program.
const Schedules::Play& Shard::play_of(std::uint32_t group, const Op& op) {
  return known_calls_.get(schedules_, group, cluster_.layout(group), op);
}

// Whether a collective of a program is one delay inside a node.
bool Shard::is_one_delay(std::uint32_t group, const Op& op) {
  return model_nodes_ && !segment_.verify && workload_.groups[group].members.size() > 1 &&
         cluster_.inside_node(group) && play_of(group, op).can_be_delay();
}

// Finds the times of all calls inside nodes, unless the run is stopped: there is no time for it in
// a segment whose clock is real.
void Shard::play_node_calls() {
  for (const RankState& r : std::span(ranks_).first(players_))
    for (const Program& program : r.role->iterations)
      for (const OpList& stream : program.streams)
        for (const Op& op : stream.distinct()) {
          if (stopped()) return;
          if (op.kind != Op::Kind::collective) continue;
          const auto [group, position] = cluster_.membership(r.id(), op.group);
          if (position == 0 && is_one_delay(group, op))
            node_calls_.of(group, op, *play_of(group, op).schedule);
        }
}

// A group wholly inside a node plays no messages: when its last member has come, the call takes its
// modelled time and ends for all members together.
void Shard::meet_in_node(RankState& r, Flight& f) {
  f.whole = Flight::Whole::in_node;
  f.actors_left = 0;
  r.flights.append(&f);
  const NodeMeetings::Meeting* met = meetings_.come(f, f.schedule->collective().size);
  if (!met) return;
  const NodeCalls::Call& call = node_calls_.of(f.group, *f.op, *f.schedule);
  ledger_.add_intra(f.row, call.sent);
  const Moment end{met->last.at + call.duration, met->last.slip};
  if (runs_ahead_ && f.op->launch == 0) return end_calls(&f, end);
  if (!virtual_) {  // one event for all: those that end together have no order to keep
    schedule(Event::Kind::call_done, end, f.rank).flight = &f;
    return;
  }
  for (Flight* member = &f; member != nullptr;) {
    Flight& one = *member;
    member = std::exchange(one.next_member, nullptr);
    schedule(Event::Kind::call_done, end, one.rank).flight = &one;
  }
}

// Null: the pair's transfers do not have the ports of their node for themselves.
TransferEnds* Shard::at_lone_ports(PairCounter& pair, GroupRank source, GroupRank target) {
  if (!node_transfers_ || segment_.verify) return nullptr;
  if (!std::exchange(pair.asked, true))
    pair.lone = node_transfers_->between(pair.group, source, target);
  return pair.lone;
}

bool Shard::is_at_lone_ports(RankState& r, const Op& op) {
  if (!node_transfers_ || op.kind == Op::Kind::collective) return false;
  const GroupRank position = cluster_.membership(r.id(), op.group).position;
  PairCounter& pair = pair_of(r, op);
  return at_lone_ports(pair, pair.receives ? pair.peer : position,
                       pair.receives ? position : pair.peer) != nullptr;
}

// An end of a transfer comes.
void Shard::meet_at_lone_ports(RankState& r, Flight& f, TransferEnds& ends) {
  f.whole = Flight::Whole::in_node;
  f.actors_left = 0;
  f.next_member = nullptr;
  r.flights.append(&f);
  TransferEnds::Open own{&f, &node_transfers_->kind_of(ends, *f.op), f.op->kind == Op::Kind::send,
                         f.start.at};
  f.schedule = own.kind->schedule.get();
  if (own.sends) {
    ledger_.add_intra(f.row, own.kind->sent);
    stats_.messages += own.kind->sent.messages;
    own.busy = std::max<Picoseconds>(0, r.nvlink.egress_free.at - own.at);
    if (!own.kind->parts->sender_waits()) {
      r.nvlink.egress_free.at = own.at + own.kind->parts->times(0, own.busy).port_free;
      own.flight = nullptr;
      end_alone(f, own.at);
    }
  }
  const std::optional<TransferEnds::Open> other = ends.meet(own);
  if (!other) return;
  const TransferEnds::Open &sender = own.sends ? own : *other, &receiver = own.sends ? *other : own;
  if (sender.kind->sent.bytes != receiver.kind->sent.bytes)
    return fail("rank " + to_string(ranks_[receiver.flight->rank].party) + " receives " +
                std::to_string(receiver.kind->sent.bytes) + " bytes where " +
                std::to_string(sender.kind->sent.bytes) + " are sent to it");
  const TransferTimes& times = sender.kind->parts->times(receiver.at - sender.at, sender.busy);
  if (sender.flight) {
    ranks_[sender.flight->rank].nvlink.egress_free.at = sender.at + times.port_free;
    end_alone(*sender.flight, sender.at + times.sender);
  }
  end_alone(*receiver.flight, sender.at + times.receiver);
}

// Ends a call that has no other members at `at`.
void Shard::end_alone(Flight& f, Picoseconds at) {
  runs_ahead_ || at <= now_ ? end_calls(&f, {at, 0}) : end_member(f, at);
}

bool Shard::between_nodes(std::uint32_t group, GroupRank a, GroupRank b) const {
  const std::vector<WorldRank>& members = workload_.groups[group].members;
  return cluster_.location(members[a]).node != cluster_.location(members[b]).node;
}

// Ends the calls of `first` and of the members behind it at `t`, one after the other.
void Shard::end_calls(Flight* first, Moment t) {
  for (Flight* f = first; f != nullptr; f = f->next_member) f->end = t;
  ready_.push(Ready::What::call, *first, 0);
}

void Shard::end_call_of(RankState& r, Flight& f) {
  if (f.next_member) ready_.push(Ready::What::call, *f.next_member, 0);
  finish_flight(r, f);
  advance(r);
}

PairCounter& Shard::pair_of(RankState& r, std::uint32_t group, GroupRank peer, bool receives) {
  for (PairCounter& c : r.pair_sequence)
    if (c.group == group && c.peer == peer && c.receives == receives) return c;
  return r.pair_sequence.emplace_back(PairCounter{group, peer, receives});
}

// Of a send or receive.
PairCounter& Shard::pair_of(RankState& r, const Op& op) {
  const auto [group, position] = cluster_.membership(r.id(), op.group);
  const auto size = static_cast<GroupRank>(workload_.groups[group].members.size());
  const GroupRank peer = ((position + op.peer) % size + size) % size;
  return pair_of(r, group, peer, op.kind == Op::Kind::recv);
}

// Ends a flight whose actors have ended: its stream goes on at the end of the last actor.
void Shard::finish_flight(RankState& r, Flight& f) {
  const Collective& c = f.schedule->collective();
  const bool bystander =
      c.func == Func::send_recv && f.position != c.root && f.position != c.target;
  if (f.data && f.op->kind != Op::Kind::send && !bystander) {
    const Checked checked = f.data->check();
    stats_.checked += checked.elements;
    stats_.wrong += checked.wrong;
  }
  f.data.reset();
  // Count a call once: a transfer at its receiver, a collective at its first member that is played.
  const bool transfer = f.op->kind != Op::Kind::collective;
  if (transfer ? f.op->kind == Op::Kind::recv : f.position == cluster_.first_played(f.group)) {
    RowStats& row = stats_.rows[f.row];
    ++row.calls;
    row.bytes += call_elements(c) * c.element_bytes;
    const Picoseconds took = f.end.at - f.start.at, late = f.end.slip - f.start.slip;
    row.total.add(took);
    row.total_late.add(late);
    const std::uint64_t call = salt_of(f);
    row.seconds.add(seconds(took), call, f.at);
    row.without_lateness.add(seconds(std::max<Picoseconds>(0, took - late)), call, f.at);
  }
  StreamState& s = r.streams[f.stream];
  // Where calls move the stream on; what it waits for meanwhile is counted by the wait.
  const auto expose = [&](const Moment& end) {
    if (f.stream == 0)
      (f.peer == kNoRank ? r.exposed : r.bubble) += std::max<Picoseconds>(0, end.at - s.now.at);
  };
  trace(r, f.stream, *f.op, f.at, f.start.at, f.end.at, f.slot);
  if (f.end.at >= s.now.at) s.cause = PathEnd(f.op->kind);
  if (s.busy_slots == 0) {
    expose(f.end);
    s.now = f.end;
    s.phase = StreamState::Phase::ready;
  } else {
    s.busy_slots &= ~(std::uint64_t{1} << f.slot);
    s.ended = later(s.ended, f.end);
    const bool launch_ended = s.at_once == 1 && s.busy_slots == 0;
    if (launch_ended) {
      expose(s.ended);
      s.now = later(s.now, s.ended);
    }
    if (s.phase == StreamState::Phase::busy && (s.at_once > 1 || launch_ended)) {
      expose(f.end);
      s.now = later(s.now, f.end);  // the stream waited for a free slot
      s.phase = StreamState::Phase::ready;
    }
  }
  if (first_sends_) busy_with_others_ -= first_sends_->leaves(f.group & ~kPointToPoint);
  r.flights.remove(&f);
  f.transfer.reset();
  flights_.give_back(f);
}

// ---- Launches ----

// Whether two calls are planned together, and `a` goes first on the channels that they share. All
// calls in flight on a stream with launches are of one launch.
bool Shard::goes_before(const Flight& a, const Flight& b) const {
  return a.stream == b.stream && a.group == b.group && a.op->launch != 0 &&
         a.schedule->turn() < b.schedule->turn();
}

template <typename Visit>
void Shard::for_actors_on(Flight& f, int channel, Visit visit) {
  const int actors = f.schedule->actors(f.position);
  for (int i = 0; i < actors; ++i)
    if (f.actors[i].channel == channel) visit(f.actors[i]);
}

// Queues the actors of the calls that the stream has launched together, the first one's before the
// others', and behind them the rank. Calls that share a channel take turns on it.
void Shard::start_launch(RankState& r, std::uint8_t stream) {
  ready_.push_rank_again(r.local, stream);
  for (Flight* f = r.flights.last(); f != nullptr; f = r.flights.before(*f)) {
    if (f->stream != stream || f->whole != Flight::Whole::no || f->by_agents) continue;
    for (int i = f->schedule->actors(f->position); i-- > 0;) {
      ActorState& a = f->actors[i];
      for (Flight* other : r.flights)
        if (goes_before(*other, *f))
          for_actors_on(*other, a.channel, [&](ActorState&) { a.waits = true; });
      if (a.waits)
        a.awaiting = 0;  // keep arrivals as early messages
      else
        ready_.push(Ready::What::actor, *f, static_cast<std::uint32_t>(i));
    }
  }
}

// Gives the channel of an actor that has ended to the next call of its launch.
void Shard::pass_turn(RankState& r, Flight& f, const ActorState& ended) {
  bool busy = false;
  Moment free = ended.ready;
  for_actors_on(f, ended.channel, [&](ActorState& a) {
    busy |= a.k < a.steps;
    free = later(free, a.ready);
  });
  if (busy) return;
  Flight* next = nullptr;
  for (Flight* other : r.flights) {
    if (!goes_before(f, *other) || (next && !goes_before(*other, *next))) continue;
    for_actors_on(*other, ended.channel, [&](ActorState&) { next = other; });
  }
  if (!next) return;
  for_actors_on(*next, ended.channel, [&](ActorState& a) {
    if (!a.waits) return;
    a.waits = false;
    a.ready = later(a.ready, free);
    a.awaiting = static_cast<std::uint8_t>((1u << a.step->recv_from.size()) - 1);
    ready_.push(Ready::What::actor, *next, next->index_of(a));
  });
}

// ---- Actors ----

void Shard::load_step(Flight& f, ActorState& a) {
  const Peers from = a.step->recv_from;
  if (!f.kept) {
    f.schedule->next_step(f.position, static_cast<int>(f.index_of(a)), a.k, *a.own);
  } else if (a.k > 0) {
    ++a.step;
  }
  if (a.step->recv_from != from) a.heard = 0;  // numbers[] belongs to the old peers
  if (a.credits) a.credits->sent = false;
  a.slice = 0;
  a.awaiting = static_cast<std::uint8_t>((1u << a.step->recv_from.size()) - 1);
  if (!a.step->depends) return;
  a.waits = true;
  a.awaiting = 0;  // keep arrivals for this step as early messages
  ++f.waiting;
}

// Lets the actor's step begin if the step that it depends on has ended; returns whether it has. An
// actor that waits for its turn on a channel gets it from pass_turn().
bool Shard::begin_step(Flight& f, ActorState& a) {
  if (!a.step->depends) return false;
  const StepOf on = f.schedule->dependency(f.position, static_cast<int>(f.index_of(a)), a.k);
  const ActorState& other = f.actors[on.actor];
  if (other.k <= on.step) return false;
  a.waits = false;
  --f.waiting;
  a.ready = later(a.ready, other.ready);
  a.awaiting = static_cast<std::uint8_t>((1u << a.step->recv_from.size()) - 1);
  return true;
}

// Runs the first actor, from index `from` on, whose step may begin now that another actor has ended
// a step; queues the search for the next one behind it.
void Shard::wake_waiting(RankState& r, Flight& f, std::uint32_t from) {
  const auto actors = static_cast<std::uint32_t>(f.schedule->actors(f.position));
  for (std::uint32_t i = from; i < actors && f.waiting > 0; ++i) {
    ActorState& a = f.actors[i];
    if (!a.waits || !begin_step(f, a)) continue;
    ready_.push(Ready::What::waiting, f, i + 1);
    return run_actor(r, f, a);
  }
}

// Goes on with the actor's next step, after the actors that waited for its last one.
void Shard::next_step(RankState& r, Flight& f, ActorState& a) {
  if (a.k < a.steps) load_step(f, a);
  run_actor(r, f, a);
}

// Walks as far as it can: until a message has not arrived, a credit or permission is missing, a
// full fabric holds the actor, or another actor must go first. Returns true at the end of the
// schedule.
bool Shard::walk_actor(RankState& r, Flight& f, ActorState& a) {
  while (a.k < a.steps) {
    if (a.waits && !begin_step(f, a)) return false;
    while (a.slice < a.step->slices) {
      if (a.awaiting && (a.early.empty() || !take_early(r, f, a))) return false;
      if (a.unposted > 0) [[unlikely]]
        return hold(a);
      if (a.credits && !take_credit(r, f, a)) return false;
      if (a.step->local && segment_.verify) do_locals(f, a);
      if (!a.step->send_to.empty() && !(a.credits && a.credits->sent)) {
        const Block slice = slice_of(a.step->send, *a.step, a.slice);
        for (const GroupRank peer : a.step->send_to) send_slice(r, f, a, peer, slice);
      }
      ++a.slice;
      a.awaiting = static_cast<std::uint8_t>((1u << a.step->recv_from.size()) - 1);
    }
    ++a.k;
    if (f.waiting > 0) {  // run the others first, because this one's next step may wait for them
      ready_.push(Ready::What::step, f, f.index_of(a));
      ready_.push(Ready::What::waiting, f, 0);
      return false;
    }
    if (a.k < a.steps) load_step(f, a);
  }
  a.awaiting = 0;
  if (a.unposted > 0) [[unlikely]]
    return hold(a);
  return !a.credits || a.credits->waiting.empty();
}

// Holds the actor until its unposted messages have left. Returns false, as the caller's answer to
// whether it went on.
bool Shard::hold(ActorState& a) {
  a.held = true;
  return false;
}

// Called when a message of this actor that a full ring or fabric had refused has left.
void Shard::posted(Flight& f, ActorState& a) {
  if (--a.unposted > 0 || !a.held) return;
  a.held = false;
  RankState& r = ranks_[f.rank];
  if (a.credits && !send_permitted(r, f, a)) return;
  run_actor(r, f, a);
}

}  // namespace ghostrank
