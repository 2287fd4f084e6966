// Calls that travel as flows (fabric.network: flow). See shard.h and shard/fluid_calls.h.
//
//   the last member comes ──> fluid: the flow comes ──> rates: all flows of this time get theirs
//                                                            │ for each that has a new one
//        call_done of each member <── fluid: the flow ends <─┘
//
// Rates are computed once for all flows that come or go at a time: that event is behind all others
// of its time, because its target has the highest number.
#include <algorithm>

#include "emulator/shard/inline.h"

namespace ghostrank {
namespace {

constexpr std::uint32_t kRatesTarget = kMostTargets - 1, kFlowsTarget = kRatesTarget - 1;
constexpr std::uint32_t kBegins = 0;  // else: FluidCalls::Look::number

void set_look(Event& e, FlowNetwork::Id flow, const FluidCalls::Look& look) {
  e.flight = nullptr;
  e.held = look.call;
  e.actor = flow;
  e.sequence = look.number;
}

}  // namespace

// A member comes to a collective.
void Shard::meet_as_fluid(RankState& r, Flight& f) {
  f.whole = Flight::Whole::fluid;
  f.actors_left = 0;
  r.flights.append(&f);
  const NodeMeetings::Meeting* met = meetings_.come(f, f.schedule->collective().size);
  if (!met) return;
  Fluid& fluid = fluids_->of(f.group, *f.op);
  const std::uint32_t call = fluids_->begin(fluid);
  fluids_->at(call).members = met->first;
  begin_fluid(call, f, met->last.at);
}

// An end of a transfer comes.
void Shard::transfer_as_fluid(RankState& r, Flight& f, PairCounter& pair) {
  f.whole = Flight::Whole::fluid;
  f.actors_left = 0;
  f.next_member = nullptr;
  r.flights.append(&f);
  const std::uint32_t number = fluids_->transfer_of(f, pair);
  FluidCalls::Active& call = fluids_->at(number);
  const Fluid& fluid = *call.fluid;
  f.schedule = fluid.layout->schedule.get();
  const bool sends = f.op->kind == Op::Kind::send;
  if (call.arrived >= 0) {  // the receiver, after the last byte
    end_member(f, std::max(f.start.at, call.arrived));
    return fluids_->end(number);
  }
  const Flight* other = call.members;
  f.next_member = call.members;
  call.members = &f;
  if (call.began || (fluid.waits ? other == nullptr : !sends)) return;
  begin_fluid(number, f, other ? std::max(f.start.at, other->start.at) : f.start.at);
}

void Shard::begin_fluid(std::uint32_t number, const Flight& f, Picoseconds at) {
  fluids_->at(number).began = true;
  Event& e = schedule(Event::Kind::fluid, {at, 0}, f.rank);
  e.flight = nullptr;
  e.held = number;
  e.sequence = kBegins;
}

void Shard::fluid_due(const Event& e) {
  if (e.sequence == kBegins) return flow_begins(e);
  const FlowNetwork::Id flow = e.actor;
  if (fluids_->look(flow).number != e.sequence) return;  // an earlier event took its place
  fluids_->looked(flow);
  if (fluids_->network().end(flow) > e.t.at) {  // it has slowed down, or stands still
    if (const FluidCalls::Look* next = fluids_->look_sooner(flow))
      set_look(schedule(Event::Kind::fluid, {next->at, 0}, kFlowsTarget), flow, *next);
    return;
  }
  fluids_->network().remove(flow);
  if (const std::uint32_t next = fluids_->next_turn(e.held); next != FluidCalls::kNone)
    fluids_->flow(next, e.t.at);
  if (fluids_->network().changed()) want_rates(e.t.at);
  flow_ends(e.held, e.t.at);
}

void Shard::flow_begins(const Event& e) {
  fluids_->depart(e.held, e.t.at);
  const FluidCalls::Active& call = fluids_->at(e.held);
  const Fluid& fluid = *call.fluid;
  const Picoseconds flowing = fluid.idle->duration - fluid.fill;
  // Members that leave before the last byte passes.
  for (Flight** at = &fluids_->at(e.held).members; *at != nullptr;) {
    Flight& member = **at;
    if (fluid.idle_end(member) >= flowing) {
      at = &member.next_member;
      continue;
    }
    *at = std::exchange(member.next_member, nullptr);
    end_member(member, std::max(member.start.at, e.t.at + fluid.idle_end(member)));
  }
  if (fluid.bytes == 0) return flow_ends(e.held, e.t.at + flowing);
  if (!fluids_->takes_turn(e.held)) return;
  fluids_->flow(e.held, e.t.at);
  want_rates(e.t.at);
}

// The last byte of a call passes at `t`.
void Shard::flow_ends(std::uint32_t number, Picoseconds t) {
  FluidCalls::Active& call = fluids_->at(number);
  const Fluid& fluid = *call.fluid;
  const Picoseconds shift = t + fluid.fill - fluid.idle->duration;
  bool receiver = false;
  while (call.members) {
    Flight& member = *call.members;
    call.members = std::exchange(member.next_member, nullptr);
    receiver |= member.op->kind == Op::Kind::recv;
    end_member(member, std::max(t, shift + fluid.idle_end(member)));
  }
  if (!fluid.transfer || receiver) return fluids_->end(number);
  call.arrived = t + fluid.fill;
}

void Shard::end_member(Flight& f, Picoseconds at) {
  fetch_rank(f.rank);  // not touched since the call began
  schedule(Event::Kind::call_done, {at, 0}, f.rank).flight = &f;
}

void Shard::want_rates(Picoseconds at) {
  if (rates_wanted_ == at) return;
  rates_wanted_ = at;
  Event& e = schedule(Event::Kind::rates, {at, 0}, kRatesTarget);
  e.flight = nullptr;
  e.held = kNil;
}

void Shard::give_rates(Picoseconds now) {
  rates_wanted_ = -1;
  if (fluids_->rates_change()) [[unlikely]]
    if (const Picoseconds next = fluids_->follow_rates(now); next >= 0) {
      Event& e = schedule(Event::Kind::rates, {next, 0}, kRatesTarget);
      e.flight = nullptr;
      e.held = kNil;
    }
  for (const FlowNetwork::Id flow : fluids_->network().settle(now))
    if (const FluidCalls::Look* look = fluids_->look_sooner(flow))
      set_look(schedule(Event::Kind::fluid, {look->at, 0}, kFlowsTarget), flow, *look);
}

}  // namespace ghostrank
