// Events of the agent checker's world, and the checks when no event is left.
#include "collectives/check/agents/world.h"

#include <algorithm>
#include <map>
#include <utility>

#include "collectives/check/str.h"

namespace ghostrank::checking {
namespace {

std::string_view word_for(Carriage carriage) {
  return carriage == Carriage::packet ? "packets" : "reliable notes";
}

// Switches off the faults that the scheme does not claim to survive.
Misfortunes claimed(Misfortunes wanted, Survives survives) {
  if (!survives.loss) wanted.loss = 0;
  if (!survives.duplicates) wanted.duplicates = 0;
  if (!survives.delay) wanted.delay = 0;
  if (!survives.reordering) wanted.reordering = 0;
  return wanted;
}

}  // namespace

AgentWorld::AgentWorld(const Ends& ends, std::span<const Call> calls,
                       const AgentCheckOptions& options)
    : ends_(ends),
      calls_(calls),
      options_(options),
      dice_(options.seed),
      switch_dice_(options.seed ^ 0x5317c4) {
  options_.misfortunes = claimed(options.misfortunes, ends.survives());
  if (!ends.survives().restart) options_.switches = {};
}

std::string AgentWorld::named(GroupParty party) const {
  if (party < 0 || static_cast<std::size_t>(party) >= parties_.size())
    return "party " + std::to_string(party);
  return std::string(name_of(parties_[party].kind)) + " " + std::to_string(party);
}

std::string AgentWorld::describe_event() const {
  std::string text = "seed " + str(options_.seed) + ", event " + str(report_.events) + ": ";
  switch (event_->kind) {
    case Event::Kind::note: {
      const Note& note = event_->parcel->note;
      return text + "on_note from " + named(event_->parcel->from) + ", tag " + str(note.tag) +
             ", call " + str(note.call) + ", index " + str(note.index);
    }
    case Event::Kind::timer:
      return text + "on_timer " + str(event_->timer);
    case Event::Kind::room:
      return text + "on_room";
    default:
      return text + "on_call";
  }
}

void AgentWorld::fail(const std::string& what, std::int64_t call) const {
  AgentReport::Where at = here();
  at.call = call;
  if (current_ < 0) throw AgentFailure{what + " (seed " + str(options_.seed) + ")", at};
  throw AgentFailure{named(current_) + (call < 0 ? "" : ", call " + std::to_string(call)) + ": " +
                         what + " (" + describe_event() + ")",
                     at};
}

void AgentWorld::check_calls() const {
  for (const Call& call : calls_) {
    const Collective& c = call.collective;
    const std::string which = "call " + str(call.number) + ", " + std::string(name_of(c.func));
    if (c.size != ends_.size())
      fail(which + " is of " + std::to_string(c.size) + " ranks, the scheme of " +
           std::to_string(ends_.size()));
    if (c.element_bytes != bytes_of(call.type)) fail(which + " has elements of two sizes");
    if (const std::string why = too_many_ranks(call); !why.empty()) fail(which + ": " + why);
    if (const std::string why = ends_.refuses(call); !why.empty())
      fail(which + " is refused: " + why);
  }
  if (index_.size() < calls_.size()) fail("two calls have one number");
}

void AgentWorld::set_up() {
  for (std::size_t i = 0; i < calls_.size(); ++i) index_[calls_[i].number] = i;
  check_calls();
  parties_.resize(ends_.size());
  for (const Helper& helper : ends_.helpers()) {
    if (helper.beside != kNoRank && (helper.beside < 0 || helper.beside >= ends_.size()))
      fail("a helper is beside rank " + std::to_string(helper.beside) + ", which there is not");
    parties_.emplace_back().kind = helper.kind;
  }
  for (std::size_t p = 0; p < parties_.size(); ++p) {
    parties_[p].agent = ends_.agent_at(static_cast<GroupParty>(p), parties_[p].site);
    if (!parties_[p].agent) fail("there is no agent for " + named(static_cast<GroupParty>(p)));
  }
  overhead_ = ends_.overhead_bytes();
  if (options_.real_data) {
    std::map<std::uint32_t, std::unique_ptr<Expected>> expected;  // by tensor
    for (const Call& call : calls_) {
      values_.emplace_back(call, options_.seed, ends_);
      auto [tensor, fresh] = expected.try_emplace(call.tensor);
      if (fresh) tensor->second = ends_.expected(call);
      if (tensor->second) values_.back().expect(*tensor->second);
    }
  }
  for (GroupParty p = 0; p < ends_.size(); ++p) plan_next_call(p);
}

void AgentWorld::push(Event event) {
  event.number = ++pushed_;
  events_.push(std::move(event));
}

void AgentWorld::plan_next_call(GroupParty rank) {
  PartyState& party = parties_[rank];
  if (party.about_to_begin || party.begun == calls_.size() ||
      party.open.size() >= static_cast<std::size_t>(std::max(1, options_.overlap)))
    return;
  party.about_to_begin = true;
  push({.at = now_ + random_time(options_.pause), .party = rank, .kind = Event::Kind::start});
}

void AgentWorld::start_call() {
  PartyState& rank = current();
  const std::size_t i = rank.begun++;
  rank.about_to_begin = false;
  const Call& call = calls_[i];
  rank.open[call.number] = std::make_unique<OpenTensor>(
      *this, call, options_.real_data ? &values_[i] : nullptr, current_);
  rank.agent->on_call(*this, call);
  plan_next_call(current_);
}

// True if the party takes the note that has come: a switch that is away does not.
bool AgentWorld::hears() {
  PartyState& party = current();
  const SwitchFaults& faults = options_.switches;
  if (party.kind != PartyKind::network_switch) return true;
  if (now_ < party.away_until) return false;
  if (++party.heard > faults.gone && faults.gone > 0) return false;
  if (faults.failure > 0 && switch_dice_.happens(faults.failure)) {
    ++report_.failures;
    party.agent.reset();  // it may refer to the site
    party.site = {};
    party.agent = ends_.agent_at(current_, party.site);
    party.timers.clear();
    if (faults.away > 0)
      party.away_until = now_ + static_cast<Picoseconds>(switch_dice_.below(faults.away));
  }
  return now_ >= party.away_until;
}

void AgentWorld::fire(const Event& event) {
  PartyState& party = current();
  if (event.kind == Event::Kind::timer) {
    const auto armed = party.timers.find(event.timer);
    if (armed == party.timers.end() || armed->second != event.arming) return;
    party.timers.erase(armed);
    timer_fired_ = true;
  }
  if (++report_.events > options_.most_events)
    fail("still busy after " + str(options_.most_events) + " events; " + who_waits());
  switch (event.kind) {
    case Event::Kind::start:
      return start_call();
    case Event::Kind::note:
      if (!hears()) {
        ++report_.unheard;
        return;
      }
      return party.agent->on_note(*this, event.parcel->from, event.parcel->note);
    case Event::Kind::timer:
      return party.agent->on_timer(*this, event.timer);
    case Event::Kind::room:
      party.waits_for_room = false;
      return party.agent->on_room(*this);
    case Event::Kind::awake:
      break;
  }
}

// Fires the event, or queues it while the party's processor is busy.
void AgentWorld::take(Event event) {
  PartyState& party = parties_[event.party];
  if (event.kind == Event::Kind::awake) {
    const Picoseconds at = event.at;
    event = std::move(party.waiting.front());
    party.waiting.pop_front();
    event.at = at;
  } else if (party.free_at > event.at || !party.waiting.empty()) {
    if (party.waiting.empty())
      push({.at = party.free_at, .party = event.party, .kind = Event::Kind::awake});
    party.waiting.push_back(std::move(event));
    return;
  }
  current_ = event.party;
  event_ = &event;
  now_ = event.at;
  fire(event);
  party.free_at = now_;
  current_ = -1;
  event_ = nullptr;
  if (!party.waiting.empty())
    push({.at = party.free_at, .party = event.party, .kind = Event::Kind::awake});
}

void AgentWorld::run() {
  set_up();
  while (!events_.empty()) {
    Event event = events_.top();
    events_.pop();
    take(std::move(event));
  }
  check_end();
  check_traffic();
}

std::string AgentWorld::who_waits() const {
  std::string text;
  int listed = 0;
  for (GroupParty r = 0; r < ends_.size(); ++r)
    for (const auto& [number, tensor] : parties_[r].open) {
      if (++listed > 8) return text + " ...";
      text += (listed > 1 ? ", " : "") + named(r) + " waits in call " + str(number);
    }
  return text.empty() ? "no call is open" : text;
}

void AgentWorld::check_end() const {
  for (GroupParty r = 0; r < ends_.size(); ++r) {
    const PartyState& rank = parties_[r];
    if (rank.open.empty() && rank.begun == calls_.size()) continue;
    AgentReport::Where at = here();
    at.party = r;
    if (!rank.open.empty()) at.call = rank.open.begin()->first;
    throw AgentFailure{"deadlock: " + who_waits() + ", and nothing more happens" +
                           (report_.refused > 0 ? "; sends refused: " + str(report_.refused) : "") +
                           (report_.lost > 0 ? "; packets lost: " + str(report_.lost) : "") +
                           " (seed " + str(options_.seed) + ")",
                       at};
  }
}

// True if the scheme may have sent more than in a fault-free run.
bool AgentWorld::disturbed() const {
  const Misfortunes& m = options_.misfortunes;
  if (options_.switches.failure > 0 || options_.switches.gone > 0) return true;
  if (m.loss > 0 || m.duplicates > 0 || m.delay > 0 || m.reordering > 0) return true;
  const AgentCheckOptions& o = options_;
  return timer_fired_ && (o.pause > 0 || o.overlap > 1 || o.slow > 0 || o.no_room > 0);
}

std::map<AgentWorld::Connection, AgentWorld::Sent> AgentWorld::promised() const {
  std::map<Connection, Sent> sums;
  for (const Call& call : calls_)
    for (const Ends::Edge& edge : ends_.traffic(call)) {
      const auto exists = [&](GroupParty p) {
        return p >= 0 && static_cast<std::size_t>(p) < parties_.size();
      };
      if (!exists(edge.from) || !exists(edge.to) || edge.from == edge.to)
        fail("traffic() has an edge from " + named(edge.from) + " to " + named(edge.to));
      Sent& sum = sums[{edge.from, edge.to, edge.carriage}];
      sum.bytes += edge.bytes;
      sum.messages += edge.messages;
    }
  std::erase_if(sums, [](const auto& entry) { return entry.second == Sent{}; });
  return sums;
}

void AgentWorld::check_traffic() const {
  const std::map<Connection, Sent> said = promised();
  if (!ends_.exact() || disturbed()) return;
  const auto compare = [&](const Connection& connection) {
    const auto was = sent_.find(connection), is = said.find(connection);
    const Sent sent = was == sent_.end() ? Sent{} : was->second;
    const Sent wanted = is == said.end() ? Sent{} : is->second;
    if (sent == wanted) return;
    const auto& [from, to, carriage] = connection;
    fail(named(from) + " sent " + str(sent.messages) + " " + std::string(word_for(carriage)) +
         " of " + str(sent.bytes) + " B in all to " + named(to) + ", traffic() says " +
         str(wanted.messages) + " of " + str(wanted.bytes) + " B");
  };
  for (const auto& [connection, sent] : sent_) compare(connection);
  for (const auto& [connection, sent] : said) compare(connection);
}

}  // namespace ghostrank::checking
