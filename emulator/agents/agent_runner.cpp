#include "emulator/agents/agent_runner.h"

#include <algorithm>
#include <map>
#include <utility>

#include "switch/assert.h"

namespace ghostrank {
namespace {

std::string text_of(const SchemeUse& use, GroupParty party) {
  return std::string(use.library) + "/" + std::string(use.name) + ", party " +
         std::to_string(party) + " of group " + std::to_string(use.group);
}

}  // namespace

// The Io that an agent is lent during one event.
class AgentRunner::Lent final : public Io {
 public:
  Lent(AgentRunner& runner, State& state, Moment at)
      : runner_(runner), state_(state), came_(at.at), at_(at), processor_(state.processor) {
    begin();
  }
  ~Lent() override { end(); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  using Io::send;
  bool send(std::span<const GroupParty> to, const Note& note, Carriage carriage) override {
    const std::uint64_t bytes = note_bytes(note, runner_.overhead(state_.address.scheme));
    if (to.empty()) return true;
    for (const GroupParty party : to)
      if (party < 0 || party >= state_.parties || party == state_.position) return no_other(party);
    if (note.words.size() > kMostWords) return too_many_words(note.words.size());
    if (carriage == Carriage::packet && bytes > runner_.most_in_packet_) return too_long(bytes);
    const LeavingNote leaving{
        state_.address, state_.party, *state_.location, state_.position, to, note, bytes,
        carriage,       now_,         state_.row};
    if (!runner_.carrier_.carry(leaving)) {
      if (!std::exchange(state_.waits_for_room, true)) runner_.waiting_.push_back(&state_);
      return false;
    }
    state_.count.tx_bytes += bytes * to.size();
    runner_.progress_ += carriage == Carriage::reliable;
    return true;
  }

  void arm(std::uint32_t timer, Picoseconds after) override {
    GHOSTRANK_ASSERT(after >= 0);
    const std::uint64_t armed = ++runner_.armed_;
    timer_named(timer).armed = armed;
    runner_.carrier_.wake(state_.address, timer, armed, {now_.at + after, now_.slip});
  }
  void disarm(std::uint32_t timer) override { timer_named(timer).armed = 0; }

  void spend(Picoseconds time) override {
    GHOSTRANK_ASSERT(time >= 0);
    now_.at += time;
  }

  void run_on(int core) override {
    if (!helper()) return;
    GHOSTRANK_ASSERT(core >= 0);
    end();
    at_ = now_;
    processor_ = state_.processor + 1 + static_cast<std::uint32_t>(core % runner_.machine_.cores);
    begin();
  }

  void work(Work work, std::uint64_t bytes) override {
    if (!helper()) return;
    const ServerMachine& machine = runner_.machine_;
    const auto kind = static_cast<std::size_t>(work);
    const auto n = static_cast<double>(bytes);
    Picoseconds& memory = runner_.memory_free_[state_.processor];
    const auto core = static_cast<Picoseconds>(n * machine.core[kind]);
    const auto passes = static_cast<Picoseconds>(n * machine.passes[kind] * machine.memory);
    // Not from when this core begins, or work that waits for one core would keep the others
    // waiting.
    memory = std::max(memory, came_) + passes;
    now_.at = std::max(now_.at + std::max(core, passes), memory);
  }

  void hold(std::uint64_t bytes) override { state_.count.memory_bytes += bytes; }

  void tell(Incident incident) override {
    SwitchTroubles& told = runner_.troubles_;
    told.restarts += incident == Incident::restart;
    told.fallbacks += incident == Incident::fallback;
    told.ring_calls += incident == Incident::ring_call;
    if (incident == Incident::fallback) told.merge({.first_fallback = now_.at});
  }

  void enter(std::uint32_t call, std::uint32_t part, Stage stage) override {
    if (state_.traced) trace(call, part, stage);
  }

  void give_up(const std::string& why) override { refuse("gives up: " + why); }

  void done(std::uint32_t call) override {
    const OpenCall* const open = state_.open.find(call);
    if (open == nullptr) {
      refuse("is done with call " + std::to_string(call) + ", which is not open");
      return;
    }
    runner_.carrier_.end_call(state_.address.local, *open->flight, now_);
    state_.open.close(call);
  }

  Tensor& tensor(std::uint32_t call) override {
    if (OpenCall* const open = state_.open.find(call)) return open->tensor;
    refuse("asks for the tensor of call " + std::to_string(call) + ", which is not open");
    return runner_.nothing_;
  }

 private:
  bool helper() const { return state_.address.local >= runner_.ranks_.size(); }
  void begin() {
    now_ = later(at_, runner_.free_[processor_]);
    began_ = now_.at;
  }
  void end() {
    state_.count.busy += now_.at - began_;
    runner_.free_[processor_] = now_;
  }

  [[gnu::noinline]] void trace(std::uint32_t call, std::uint32_t part, Stage stage) {
    const OpenCall* const open = state_.open.find(call);
    if (open == nullptr) return;
    InStage& in = state_.stages[{call, part}];
    if (in.stage != Stage::none)
      runner_.carrier_.trace_stage(*open->flight, part, in.stage, in.since, now_);
    in = {stage, now_};
    if (stage == Stage::none) state_.stages.erase({call, part});
  }

  // A send that a scheme must not make ends the run. Return true, as if it had been sent.
  [[gnu::cold]] bool no_other(GroupParty party) {
    return refuse("sends to party " + std::to_string(party) + ", which is none of the others");
  }
  [[gnu::cold]] bool too_many_words(std::size_t bytes) {
    return refuse("sends " + std::to_string(bytes) + " bytes of words in one note; at most " +
                  std::to_string(kMostWords) + " are allowed");
  }
  [[gnu::cold]] bool too_long(std::uint64_t bytes) {
    return refuse("sends a packet of " + std::to_string(bytes) +
                  " bytes, which fabric.packets.mtu (" + std::to_string(runner_.mtu_) +
                  ") does not let pass: beside its headers " +
                  std::to_string(runner_.most_in_packet_) + " fit; raise it, or send smaller ones");
  }

  bool refuse(const std::string& what) {
    runner_.carrier_.refuse("the agent of " + text_of(*state_.use, state_.position) + " " + what);
    return true;
  }

  Timer& timer_named(std::uint32_t name) {
    for (Timer& t : state_.timers)
      if (t.name == name) return t;
    return state_.timers.emplace_back(Timer{name, 0});
  }

  AgentRunner& runner_;
  State& state_;
  const Picoseconds came_;   // when the event came
  Moment at_;                // when its present part could begin
  std::uint32_t processor_;  // or core, on which it runs
  Moment now_;
  Picoseconds began_ = 0;  // on that processor
};

AgentRunner::RankTensor::RankTensor(RankData* data, Func func, std::uint32_t element,
                                    GroupRank position, const std::optional<TensorContent>& content,
                                    std::uint64_t& progress)
    : real_(data ? std::make_unique<Real>(Real{*data, {}}) : nullptr),
      progress_(&progress),
      content_(content ? std::make_unique<const TensorContent>(*content) : nullptr),
      element_(element),
      position_(position),
      input_(func == Func::all_to_all || func == Func::all_to_all_v ? Buffer::input
                                                                    : Buffer::work) {}

std::span<const std::byte> AgentRunner::RankTensor::read(std::uint64_t first,
                                                         std::uint64_t elements) {
  if (first + elements > read_to_) {
    read_to_ = first + elements;
    ++*progress_;
  }
  if (!real_) return {};
  real_->read.resize(elements * element_);
  real_->data.read({first, elements, input_}, real_->read.data());
  return real_->read;
}

void AgentRunner::RankTensor::write(std::uint64_t first, std::span<const std::byte> elements) {
  ++*progress_;
  if (!real_ || elements.empty()) return;
  real_->data.write({first, elements.size() / element_, Buffer::work}, elements.data(),
                    Combine::copy);
}

bool AgentRunner::RankTensor::nonzero(std::uint64_t first, std::uint64_t elements) {
  return content_ ? content_->nonzero(position_, first, elements) : elements > 0;
}

AgentRunner::AgentRunner(const Cluster& cluster, const std::vector<WorldRank>& ranks,
                         const std::vector<WorldParty>& helpers, const ServerMachine& machine,
                         std::uint32_t mtu, std::uint64_t most_in_packet,
                         const SwitchSpec& network_switch, NoteCarrier& carrier)
    : cluster_(cluster),
      ranks_(ranks),
      helpers_(helpers),
      mtu_(mtu),
      most_in_packet_(most_in_packet),
      carrier_(carrier),
      machine_(machine),
      switch_(network_switch) {
  if (!serves()) return;
  for (const SchemeUse& use : cluster.schemes()) overhead_.push_back(use.ends->overhead_bytes());
  parties_.resize(ranks.size() + helpers.size());
  std::uint32_t processors = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) processor_of_.push_back(processors++);
  std::map<Node, std::uint32_t> of_node;  // by node: the processor that its helpers share
  for (const WorldParty helper : helpers) {
    const auto [known, fresh] = of_node.try_emplace(cluster.location(helper).node, processors);
    if (fresh) processors += 1 + static_cast<std::uint32_t>(machine.cores);
    processor_of_.push_back(known->second);
  }
  free_.resize(processors);
  memory_free_.resize(free_.size());
  sites_.resize(free_.size());
}

ServerMachine server_machine(const ServerSpec& servers, int rank_nodes) {
  const auto per_byte = [](double GBps) { return GBps > 0 ? 1e3 / GBps : 0; };
  ServerMachine out{.cores = servers.cores};
  const double add = per_byte(servers.add_GBps);
  out.core = {add, add, per_byte(servers.optimizer_GBps)};
  // A copy reads and writes; a sum reads both and writes one; Nesterov's step reads gradient,
  // momentum and weights, and writes the latter two.
  out.passes = {2, 3, 5};
  out.memory = per_byte(servers.memory_GBps);
  out.stops = servers.fails;
  out.stops_at = servers.fails_at;
  out.places = std::max(1, servers.places(rank_nodes));
  return out;
}

std::vector<HelperCount> AgentRunner::helper_counts() const {
  std::vector<HelperCount> out;
  for (const State& s : states_)
    if (s.address.local >= ranks_.size()) out.push_back(s.count);
  return out;
}

void AgentRunner::clear(bool fail) {
  fail_ = fail;
  troubles_ = {};
  expected_.clear();
  std::erase_if(states_, [](const State& s) { return !s.use->outside; });
  std::fill(parties_.begin(), parties_.end(), Party{});
  waiting_.clear();
  counts_.clear();
  of_row_.clear();
  for (State& s : states_) {
    s.row = new_row(s.address);
    enlist(s);
    s.timers.clear();
    s.stages.clear();
    s.open.clear();
    s.waits_for_room = false;
  }
  std::fill(free_.begin(), free_.end(), Moment{});
  std::fill(sites_.begin(), sites_.end(), Site{});
  std::fill(memory_free_.begin(), memory_free_.end(), 0);
}

TensorResult* AgentRunner::expected(std::uint32_t scheme, const Call& call) {
  if (call.tensor == 0) return nullptr;
  const auto [at, fresh] = expected_.try_emplace({scheme, call.tensor});
  if (fresh) at->second.reference = cluster_.schemes()[scheme].ends->expected(call);
  return at->second.reference ? &at->second : nullptr;
}

// Null: the agent has had no event yet.
AgentRunner::State* AgentRunner::known_state(AgentAddress who) const {
  for (State* s = parties_[who.local].first; s != nullptr; s = s->next)
    if (s->address.scheme == who.scheme) return s;
  return nullptr;
}

AgentRunner::State& AgentRunner::state_of(AgentAddress who) {
  State* const known = known_state(who);
  return known != nullptr ? *known : new_state(who);
}

AgentRunner::State& AgentRunner::new_state(AgentAddress who) {
  State* const state = &states_.emplace_back();
  state->address = who;
  state->use = &cluster_.schemes()[who.scheme];
  if (who.local < ranks_.size()) {
    state->party = ranks_[who.local];
    state->position = cluster_.group_rank(ranks_[who.local], state->use->group);
  } else {
    state->party = helpers_[who.local - ranks_.size()];
    state->position = state->use->ends->size() + (state->party - state->use->first_helper);
  }
  state->location = &cluster_.location(state->party);
  state->parties = state->use->ends->size() + static_cast<GroupParty>(state->use->helpers.size());
  state->row = new_row(who);
  state->processor = processor_of_[who.local];
  state->fails = fails(*state);
  state->traced = carrier_.traces(who.local);
  state->count.party = state->party;
  make_agent(*state);
  enlist(*state);
  return *state;
}

// Puts a state in front of its party's others.
void AgentRunner::enlist(State& s) {
  Party& party = parties_[s.address.local];
  s.next = std::exchange(party.first, &s);
  party.agent = s.agent.get();
}

std::uint32_t AgentRunner::new_row(AgentAddress who) {
  of_row_.push_back(who);
  return counts_.new_row();
}

void AgentRunner::enter_counts() {
  counts_.take_all([this](std::uint32_t row, GroupParty receiver, const LedgerCell& notes) {
    carrier_.enter(of_row_[row], receiver, notes);
  });
}

void AgentRunner::make_agent(State& s) {
  s.agent = s.use->ends->agent_at(s.position, sites_[s.processor]);
  GHOSTRANK_ASSERT(s.agent != nullptr);
}

AgentRunner::Fails AgentRunner::fails(const State& s) const {
  if (s.address.local < ranks_.size()) return Fails::never;
  const int helper = s.position - s.use->ends->size();
  const Helper& which = s.use->helpers[static_cast<std::size_t>(helper)];
  if (which.kind == PartyKind::network_switch) return Fails::goes_away;
  const bool stops = which.kind == PartyKind::server && which.beside == kNoRank &&
                     helper % machine_.places == machine_.stops;
  return stops ? Fails::stops : Fails::never;
}

// Whether the party hears of an event at `at`: a server that has stopped does not, nor does a
// switch that is away.
bool AgentRunner::hears(State& s, Picoseconds at) {
  if (!fail_ || s.fails == Fails::never) return true;
  return s.fails == Fails::goes_away ? switch_hears(s, at) : at < machine_.stops_at;
}

// Schemes that survive a failing switch keep nothing at its site, so a new agent starts without any
// memory of the time before.
bool AgentRunner::switch_hears(State& s, Picoseconds at) {
  const auto last = std::upper_bound(switch_.fails_at.begin(), switch_.fails_at.end(), at);
  const std::ptrdiff_t failures = last - switch_.fails_at.begin();
  if (failures > s.failures) {
    s.failures = failures;
    s.timers.clear();
    s.count.memory_bytes = 0;  // the new agent calls hold() again
    make_agent(s);
    parties_[s.address.local].agent = s.agent.get();
  }
  return failures == 0 || at >= *std::prev(last) + switch_.away;
}

void AgentRunner::expect_party(std::uint32_t local) const {
  const Party& party = parties_[local];
  if (party.first == nullptr) return;
  const auto* const state = reinterpret_cast<const char*>(party.first);
  const auto* const agent = reinterpret_cast<const char*>(party.agent);
  for (std::size_t line = 0; line < 2; ++line) {
    __builtin_prefetch(state + 64 * line, 1);
    __builtin_prefetch(agent + 64 * line, 1);
  }
  __builtin_prefetch(&free_[processor_of_[local]], 1);
}

void AgentRunner::expect_note(AgentAddress who, GroupParty from, std::uint32_t call,
                              std::uint32_t index) const {
  const State* const s = known_state(who);
  if (s == nullptr) return;
  s->open.prefetch(call);
  s->agent->expect(from, call, index);
}

template <typename Tell>
void AgentRunner::tell(State& s, Moment at, const Tell& what) {
  Lent io(*this, s, at);
  what(io);
}

void AgentRunner::on_call(AgentAddress who, const Collective& collective, DataType type,
                          std::uint32_t tensor, const std::optional<TensorContent>& content,
                          Flight& flight, RankData* data, Moment at) {
  State& s = state_of(who);
  const Call call{s.calls++, collective, type, content ? content->sparsity() : Sparsity{}, tensor};
  s.open.open(call.number,
              OpenCall{&flight, RankTensor(data, collective.func, collective.element_bytes,
                                           s.position, content, progress_)});
  tell(s, at, [&](Io& io) { s.agent->on_call(io, call); });
}

void AgentRunner::on_note(AgentAddress who, GroupParty from, const Note& note, Moment at) {
  State& s = state_of(who);
  if (!hears(s, at.at)) {
    ++troubles_.unheard;
    return;
  }
  s.count.rx_bytes += note_bytes(note, overhead(who.scheme));
  tell(s, at, [&](Io& io) { s.agent->on_note(io, from, note); });
}

void AgentRunner::on_timer(AgentAddress who, std::uint32_t timer, std::uint64_t armed, Moment at) {
  State& s = state_of(who);
  if (!hears(s, at.at)) return;
  for (Timer& t : s.timers) {
    if (t.name != timer || t.armed != armed) continue;  // it was armed again or disarmed since
    t.armed = 0;
    return tell(s, at, [&](Io& io) { s.agent->on_timer(io, timer); });
  }
}

void AgentRunner::give_room(Moment at) {
  for (State* s : std::exchange(waiting_, {})) {
    s->waits_for_room = false;
    tell(*s, at, [&](Io& io) { s->agent->on_room(io); });
  }
}

}  // namespace ghostrank
