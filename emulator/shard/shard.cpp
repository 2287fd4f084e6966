// The loops, and the events that they fire. See shard.h.
#include <algorithm>
#include <limits>

#include "emulator/common/monotonic.h"
#include "emulator/shard/inline.h"

namespace ghostrank {
namespace {

constexpr Picoseconds kNever = Windows::kNever;
constexpr int kEventsPerPass = 512;  // then the loop polls the fabric again
constexpr int kEventsPerClockRead = 32;
constexpr std::chrono::milliseconds kLongestSleep{50}, kLongRest{5};
// epoll may return late by 0.1 % of the timeout (0.5 % if niced): shorten waits longer than
// kExactSleep by 1/kCut, then wait again.
constexpr std::chrono::microseconds kExactSleep{500};
constexpr int kCut = 128;
// Spin for deadlines nearer than kDueSoon (shared core) or kWakeUp (own core; wake up that early).
constexpr std::chrono::microseconds kDueSoon{20}, kWakeUp{60};
// Retry after so long. A shard takes milliseconds for a full ring if its thread runs, so the other
// one sleeps meanwhile; a fabric needs calls to make progress.
constexpr std::chrono::microseconds kFabricIsFull{20}, kRingIsFull{200};
// With fewer pending events the cache already holds their data, so nothing is prefetched.
constexpr std::size_t kCachedEvents = 128;
// Prefetch distances, in events: firing so many takes a few memory latencies.
constexpr std::size_t kFlightsAhead = 12, kTransfersAhead = 9, kActorsAhead = 6, kCreditsAhead = 3;

// The actor that a message is likely for: a rank's actors mostly have the numbers of its peers'.
// Null: the flight has none.
const ActorState* likely_actor(const Event& e) {
  const std::vector<ActorState>& actors = e.flight->actors;
  return actors.empty() ? nullptr : &actors[e.actor < actors.size() ? e.actor : 0];
}

template <typename Object>
[[gnu::always_inline]] inline void fetch_all(const Object& object) {
  for (std::size_t line = 0; line < sizeof object; line += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(&object) + line);
}

// Of a list that is short.
template <typename Value>
[[gnu::always_inline]] inline void fetch_list(const std::vector<Value>& list) {
  constexpr std::size_t most = 512;
  const auto* const begin = reinterpret_cast<const char*>(list.data());
  const std::size_t bytes = std::min(list.size() * sizeof(Value), most);
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(begin + at);
}

// What an ingress takes in where rates change: bytes.
struct AtRates {
  SlowerRate own;     // of the NIC
  SlowerRate slower;  // of the message's NICs
  Picoseconds begin;  // of the segment
  Picoseconds left;   // when that left its sender which comes at time 0
  bool evenly;        // bytes come so, because a link is slower than the NICs

  double between(Picoseconds from, Picoseconds to) const {
    return own.bytes_between(begin + from, begin + to);
  }
  double come(double bytes, Picoseconds head, Picoseconds t, Picoseconds tail) const {
    if (evenly) return AtOneRate::come(bytes, head, t, tail);
    return bytes / slower.bytes_between(left + head, left + tail) *
           slower.bytes_between(left + head, left + t);
  }
  Picoseconds duration(Picoseconds start, double bytes) const {
    return own.duration(begin + start, bytes);
  }
  Picoseconds next_change(Picoseconds after) const {
    const Picoseconds change = slower.next_change(left + after);
    return change == RateCurve::kEver ? change : change - left;
  }
};

}  // namespace

// ---- The loop ----

// Real time: takes arrivals, fires due events and retries the outboxes. When none of these did
// anything, sleeps until one of them may have work.
void Shard::run_real() {
  while (!finished() && !stopped()) {
    if (ranks_left_ > 0) ended_ = now_;
    bool busy = take_arrivals();
    busy |= fire_due();
    busy |= flush();
    if (agents_.wants_room()) agents_.give_room({now_, 0});
    if (!busy)
      sleep();
    else
      got_on() ? note_progress() : note_rest();
  }
  note_end();
}

// Virtual time: the clock jumps to the next event. Several shards play in windows, between which
// they meet and exchange mail. This is the loop of the shard's thread, which also plays windows of
// shards whose threads have no core (shared/windows.h).
void Shard::run_virtual() {
  Windows& windows = shared_->windows;
  const Windows::Play play = [this](int of) {
    Shard& shard = *shared_->players[of];
    const bool goes_on = shard.play_window();
    GHOSTRANK_ASSERT(goes_on);  // else this shard would have ended at the same meeting
    shard.come_to_meeting();
  };
  do {
    come_to_meeting();
    stats_.idle_seconds += static_cast<double>(windows.wait(index_, play)) * 1e-9;
  } while (play_window());
  if (!stopped() && ranks_left_ > 0) fail("deadlock: " + what_is_stuck());
}

void Shard::come_to_meeting() {
  if (agents_.serves()) tell_whether_it_got_on();
  const Picoseconds next = timers_.empty() ? kNever : timers_.next();
  const bool silent = first_sends_ && busy_with_others_ == 0;
  shared_->windows.come(index_,
                        {next, silent ? first_sends_->first(ranks_) : 0, got_on_at_, stopped()});
}

// Plays the window after a meeting of all shards; returns false if the run ends there. The
// lookahead is the least time in which the network brings a message from one shard to another. A
// shard's window ends before the others can affect it: one lookahead after they may send, or after
// its own mail reaches them, which they may answer. So a shard whose ranks compute, or send to each
// other alone, lets the others go on. A shard that is behind the others goes no further than to
// where they are, or for one lookahead, so that all end their windows together: ranks of one role
// do the same at the same time. Else one shard would play a burst in this window, and the others
// theirs in the next, and they would leap over each other for ever.
bool Shard::play_window() {
  Windows& windows = shared_->windows;
  windows.begin(index_);
  ++stats_.windows;
  Picoseconds first = kNever, others_send = kNever;
  for (int shard = 0; shard < shared_->shards; ++shard) {
    first = std::min(first, windows.first(index_, shard));
    if (shard != index_) others_send = std::min(others_send, windows.sends(index_, shard));
  }
  const Picoseconds own = windows.sends(index_, index_);
  window_end_ = own < others_send ? std::max(others_send, after(own, lookahead_))
                                  : after(others_send, lookahead_);
  if (first == kNever || windows.stopped(index_)) return false;
  if (agents_.serves() && agents_repeat_themselves(first)) return false;
  windows.take_mail(index_, [this](auto&& mail) { take_over(std::move(mail)); });
  play_events();
  return true;
}

void Shard::play_events() {
  stats_.busy_windows += !timers_.empty() && timers_.next() < window_end_;
  for (std::uint32_t n = 0; !timers_.empty() && timers_.next() < window_end_; ++n) {
    if (n % 65536 == 65535 && (stopped() || agents_.serves())) break;
    now_ = timers_.next();
    Event& event = pop();
    timers_.first_is_at(now_, event.rank) ? fire_tied(event) : fire(event);
    go_on();
    if (backlog_of_ != kNil) go_through_backlog();
  }
}

bool Shard::finished() const {
  return ranks_left_ == 0 && outboxes_.turns() == 0 && outboxes_.kept() == 0 && fabric_.idle() &&
         (!packets_ || packets_->idle()) && (!switch_packets_ || switch_packets_->idle()) &&
         (!agents_.serves() || shared_->at_rest.load(std::memory_order_relaxed)) &&
         (links_.empty() || shared_->ended.load(std::memory_order_relaxed) == shared_->shards);
}

bool Shard::take_arrivals() {
  bool any = false;
  if (wired_) {
    // poll_lag_ is the time since the last poll, because in between nobody reads the kernel's
    // buffers; during a poll the fabric itself works.
    const std::int64_t away_ns = monotonic_ns() - looked_ns_;
    poll_lag_ = static_cast<Picoseconds>(static_cast<double>(away_ns) * 1000 / segment_.dilation);
    fabric_.poll(arrived_);
    looked_ns_ = monotonic_ns();
    if (!fabric_.failure().empty()) fail(fabric_.failure(), true);
    now_ = clock_.now();
    if (std::exchange(woke_, false) && !arrived_.empty()) poll_lag_ += lag_of_wait();
    for (Message& m : arrived_) arrive_from_wire(std::move(m));
    any |= !arrived_.empty();
    arrived_.clear();
    const std::uint64_t moved = fabric_.stats().moved;
    any |= moved != moved_;
    moved_ = moved;
    if (packets_) any |= take_packets(*packets_, false);
    if (switch_packets_) any |= take_packets(*switch_packets_, true);
  }
  for (int from = 0; from < shared_->shards; ++from) {
    if (from == index_) continue;
    SpscRing<Parcel>& ring = *shared_->rings[from * shared_->shards + index_];
    Parcel p;
    for (int n = 0; n < kEventsPerPass && ring.try_pop(p); ++n, any = true) take_over(std::move(p));
  }
  return any;
}

// Emulated: how long a message that came while the loop blocked may have waited until this thread
// ran. Reading the kernel's run-queue delay takes 1.5 us.
Picoseconds Shard::lag_of_wait() {
  const std::int64_t queued = run_delay_->so_far_ns().value_or(0);
  const std::int64_t lag = held_up_.lag_ns(queued - std::exchange(queued_ns_, queued));
  return static_cast<Picoseconds>(static_cast<double>(lag) * 1000 / segment_.dilation);
}

HeldUp::Instant Shard::instant() const { return {monotonic_ns(), thread_cpu_ns()}; }

bool Shard::fire_due() {
  now_ = clock_.now();
  int fired = 0;
  while (fired < kEventsPerPass && !timers_.empty() && timers_.next() <= now_) {
    fire(pop());
    go_on();
    if (++fired % kEventsPerClockRead == 0) now_ = clock_.now();
  }
  return fired > 0;
}

void Shard::sleep() {
  const std::int64_t began = monotonic_ns();
  std::int64_t due = HeldUp::kNoDeadline;
  auto timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(kLongestSleep);
  if (packets_) packets_->flush();
  if (switch_packets_) switch_packets_->flush();
  // Neither a full ring nor a fabric tells when it has room.
  if (outboxes_.kept() > 0 || (packets_ && !packets_->idle()) ||
      (switch_packets_ && !switch_packets_->idle()))
    timeout = wired_ || packets_ ? kFabricIsFull : kRingIsFull;
  if (!timers_.empty()) {
    const std::chrono::nanoseconds left =
        clock_.wall(std::max<Picoseconds>(0, timers_.next() - clock_.now()));
    due = began + left.count();
    timeout = std::min(timeout, left);
  } else if (!wired_ && cluster_.shards() == 1 && ranks_left_ > 0) {
    return fail("deadlock: " + what_is_stuck());
  }
  note_rest();
  if (timeout > kLongRest) timers_.trim();
  auto& asleep = *shared_->asleep[index_];
  if (shared_->shards > 1) {
    // A shard that pushes to us swaps this flag after its push: either we find the event in the
    // ring below, or that shard wakes us.
    asleep.exchange(true);
    for (int from = 0; from < shared_->shards; ++from) {
      if (from == index_) continue;
      SpscRing<Parcel>& ring = *shared_->rings[from * shared_->shards + index_];
      Parcel p;
      if (ring.try_pop(p)) {
        take_over(std::move(p));
        timeout = std::chrono::nanoseconds(0);
      }
    }
  }
  // Spin for deadlines nearer than kDueSoon even on a shared core, because sleeping and waking up
  // takes longer. On its own core the shard wakes up kWakeUp early and spins.
  const std::chrono::nanoseconds awake = spin_.count() > 0 ? kWakeUp : kDueSoon;
  if (timeout > kExactSleep) timeout -= timeout / kCut;
  if (spin_.count() > 0 && timeout > awake) timeout -= awake;
  const bool blocks = timeout > awake;
  if (blocks) held_up_.rest(instant());
  const std::uint64_t interrupted = fabric_.stats().interrupted;
  if (timeout.count() > 0) fabric_.wait(timeout, blocks ? spin_ : timeout);
  if (blocks) held_up_.wake(instant(), due, fabric_.stats().interrupted != interrupted);
  woke_ |= blocks;
  if (shared_->shards > 1) asleep.exchange(false);
  looked_ns_ = monotonic_ns();
  stats_.idle_seconds += static_cast<double>(looked_ns_ - began) * 1e-9;
}

// ---- Events ----

void Shard::schedule(const Event& event) {
  Event& e = schedule(event.kind, event.t, event.rank);
  const std::uint32_t order = e.order;
  e = event;
  e.order = order;
}

// Returns the NIC by which a message comes in.
Nic Shard::nic_of(const Event& e) const {
  if (e.via == 0) return own_nic_[e.rank];
  return cluster_.nic(cluster_.location(ranks_[e.rank].party).node, e.via - 1);
}

// Takes an event or parcel that another shard of the process sent.
void Shard::take_over(Event event) {
  GHOSTRANK_ASSERT(event.t.at >= now_);  // else a window was too long
  event.flight = nullptr;                // it points to the sender's flight
  schedule(event);
}

void Shard::take_over(Parcel parcel) {
  if (parcel.event.kind == Event::Kind::link || parcel.event.kind == Event::Kind::landing)
    return take_over_on_links(std::move(parcel));
  Event event = parcel.event;
  event.flight = nullptr;  // it points to the sender's flight
  if (parcel.message.payload) event.held = held_.put(std::move(parcel));
  schedule(event);
}

// Prefetches the data of events behind the next one: each part well before the part to which it
// points.
void Shard::prefetch() const {
  if (const Event* later = timers_.ahead(kFlightsAhead)) {
    if (later->kind == Event::Kind::link || later->kind == Event::Kind::landing)
      prefetch_on_links(*later);
    if (later->kind != Event::Kind::link) __builtin_prefetch(later->flight);
  }
  const Event* const soon = timers_.ahead(kActorsAhead);
  if (soon == nullptr) return;
  if (soon->kind == Event::Kind::link) return prefetch_path(*soon);
  if (soon->flight) {
    const auto* actor = reinterpret_cast<const char*>(likely_actor(*soon));
    for (std::size_t line = 0; line <= sizeof(ActorState); line += 64)  // starts anywhere in a line
      __builtin_prefetch(actor + line);
  }
  const Event* const next = timers_.ahead(kCreditsAhead);
  if (next == nullptr || next->kind == Event::Kind::link || !next->flight) return;
  const ActorState* const actor = likely_actor(*next);
  if (actor == nullptr || !actor->credits) return;
  __builtin_prefetch(actor->credits.get());
  __builtin_prefetch(reinterpret_cast<const char*>(actor->credits.get()) + 64);
}

// The same where calls are flows. What an event touches at a rank, at the end of a flow and, where
// a stream goes on with a transfer, of that transfer.
void Shard::prefetch_flows() const {
  asm volatile("");  // an effect, so that GCC keeps the call
  const auto is_end = [](const Event& e) { return e.kind == Event::Kind::fluid && e.sequence > 0; };
  const auto is_at_rank = [this](const Event& e) {
    return e.kind != Event::Kind::fluid && e.rank < players_;
  };
  const auto ends = [](const Event& e) {
    return e.kind == Event::Kind::delay_done ? e.held : kNil;
  };
  if (const Event* e = timers_.ahead(kFlightsAhead)) {
    if (is_end(*e)) {
      fluids_->fetch_call(e->held, e->actor);
    } else if (is_at_rank(*e)) {
      fetch_rank(e->rank);
      if (e->kind == Event::Kind::delay_done)
        fluids_->fetch_ends(e->held);
      else if (e->flight)
        fetch_all(*e->flight);
    }
  }
  if (const Event* e = timers_.ahead(kTransfersAhead)) fluids_->fetch_fluid(ends(*e));
  if (const Event* e = timers_.ahead(kActorsAhead)) {
    if (is_end(*e)) {
      fluids_->fetch_lists(e->held, e->actor);
    } else if (is_at_rank(*e)) {
      const RankState& r = ranks_[e->rank];
      fetch_list(r.streams);
      fetch_list(r.events);
      fetch_list(r.pair_sequence);
      __builtin_prefetch(&cluster_.membership(r.id(), 0));
      fluids_->fetch_route(ends(*e));
    }
  }
  if (const Event* e = timers_.ahead(kCreditsAhead)) {
    if (is_end(*e))
      fluids_->fetch_resources(e->actor);
    else
      fluids_->fetch_needs(ends(*e));
  }
  if (const Event* e = timers_.ahead(1)) fluids_->fetch_needed(ends(*e));
}

Event& Shard::pop() {
  const bool cold = timers_.size() >= kCachedEvents;
  if (cold) fluids_ ? prefetch_flows() : prefetch();
  Event& event = timers_.pop();
  if (const std::uint32_t next = timers_.first_rank(); cold && next < ranks_.size()) {
    __builtin_prefetch(&ranks_[next].streams);
    __builtin_prefetch(&ranks_[next].events);
  }
  return event;
}

// Fires `first` and every event due at the same time at the same rank, in the order of TiedEvents.
[[gnu::noinline]] void Shard::fire_tied(const Event& first) {
  const Picoseconds at = first.t.at;
  const std::uint32_t rank = first.rank;
  const auto add = [this](const Event& event) {
    const bool by_links = event.kind == Event::Kind::link || event.kind == Event::Kind::landing;
    tied_.add(sender_of(event), event, by_links ? on_links_[event.held].number : 0);
  };
  tied_.clear();
  add(first);
  while (timers_.first_is_at(at, rank)) add(timers_.pop());
  fire_in_order();
}

void Shard::fire_in_order() {
  for (TiedEvents::Tied& tied : tied_.in_order()) {
    fire(tied.event);
    go_on();
  }
}

// Lets a helper take the notes that have queued at its NIC, as far as it may run ahead.
void Shard::go_through_backlog() {
  const std::uint32_t helper = backlog_of_;
  const auto source = static_cast<std::uint32_t>(ranks_.size()) + helper;
  const Port& port = nics_[own_nic_[helper]];
  for (;;) {
    const Picoseconds end = std::min(port.ingress_free.at, backlogs_.next_timer(helper));
    Event* const first = timers_.pop_early(source, end);
    if (first == nullptr) break;
    const Picoseconds at = first->t.at;
    if (timers_.time_of(source) != at) {
      fire(*first);
      go_on();
      continue;
    }
    tied_.clear();
    tied_.add(sender_of(*first), *first);
    while (const Event* next = timers_.pop_early(source, at + 1))
      tied_.add(sender_of(*next), *next);
    fire_in_order();
  }
  timers_.settle();
  backlog_of_ = kNil;
}

void Shard::fire_at_once(Event& event) {
  fire(event);
  go_on();
}

// Runs one item of the ready queue.
void Shard::go_on_with(const Ready& next) {
  if (next.what == Ready::What::rank) return advance(ranks_[next.index], next.stream, next.started);
  Flight& f = *next.flight;
  RankState& r = ranks_[f.rank];
  switch (next.what) {
    case Ready::What::rank:
      return;
    case Ready::What::actor:
      return run_actor(r, f, f.actors[next.index]);
    case Ready::What::step:
      return next_step(r, f, f.actors[next.index]);
    case Ready::What::waiting:
      return wake_waiting(r, f, next.index);
    case Ready::What::call:
      return end_call_of(r, f);
  }
}

// Returns the party that sent a message; kNoParty: the event is no message.
WorldParty Shard::sender_of(const Event& e) const {
  const bool message = e.kind == Event::Kind::ingress || e.kind == Event::Kind::nvlink ||
                       e.kind == Event::Kind::arrival || e.kind == Event::Kind::delivery ||
                       e.kind == Event::Kind::link || e.kind == Event::Kind::landing;
  if (!message) return kNoParty;
  if (e.message == MessageKind::note)
    return cluster_.world_party(cluster_.schemes()[e.group], e.source);
  const auto& members = workload_.groups[e.group & ~kPointToPoint].members;
  return members[e.source];
}

void Shard::fire(Event& event) {
  ++stats_.events;
  Picoseconds head = kNotYet;  // when the first byte came; kNotYet: not known
  const auto rank = [&]() -> RankState& { return ranks_[event.rank]; };  // not for links
  // A message has come to its port, which lets it in at `in`.
  const auto pass = [&](Port& port, const Moment& in) {
    const bool note = event.message == MessageKind::note;
    event.kind = Event::Kind::arrival;
    if (!port.must_queue(event.t.at, in.at))
      return note ? note_arrived(event) : arrive(rank(), event);
    event.t = in;
    if (!note) return schedule(event);
    Event& e = schedule_from(ranks_.size() + event.rank, event.kind, in, event.rank);
    const std::uint32_t order = e.order;
    e = event;
    e.order = order;
  };
  switch (event.kind) {
    case Event::Kind::delay_done:
      if (!virtual_) {
        const auto late = static_cast<double>(now_ - event.t.at) * 1e-3 * segment_.dilation;
        stats_.lateness_ns.add(late > 0 ? static_cast<std::uint64_t>(late) : 0);
      }
      return end_delays(rank(), event.t.at);
    case Event::Kind::link:
      of_agents_ += event.message == MessageKind::note;
      return pass_link(event);
    case Event::Kind::landing:
      head = on_links_[event.held].tail;
      if (!land(rank(), event, head)) {
        of_agents_ += event.message == MessageKind::note;
        return;
      }
      [[fallthrough]];
    case Event::Kind::ingress: {
      const Nic nic = nic_of(event);
      const bool note = event.message == MessageKind::note;
      of_agents_ += note;
      Port& port = nics_[nic];
      Moment in = rates_ || note || head != kNotYet
                      ? enter_nic(nic, event, head)
                      : port.take_ingress(event.t, nic_.serialise(event.bytes()));
      if (lost_turns_.possible()) in = lost_turns_.charged(nic, event.t, in);
      return pass(port, in);
    }
    case Event::Kind::nvlink: {
      of_agents_ += event.message == MessageKind::note;
      Port& port = rank().nvlink;
      return pass(port, port.take_ingress(event.t, intra_.serialise(event.bytes())));
    }
    case Event::Kind::arrival:
      if (event.message == MessageKind::note) [[unlikely]] {
        ++of_agents_;
        if (backlogs_.runs_ahead(event.rank)) backlog_of_ = event.rank;
        return note_arrived(event);
      }
      return arrive(rank(), event);
    case Event::Kind::delivery:
      return arrive(rank(), event);
    case Event::Kind::timer:
      ++of_agents_;
      backlogs_.fired(event.rank);
      return agents_.on_timer({event.rank, event.group}, event.sequence, event.bytes(), event.t);
    case Event::Kind::call_done:
      return end_calls(event.flight, event.t);
    case Event::Kind::fluid:
      return fluid_due(event);
    case Event::Kind::rates:
      return give_rates(event.t.at);
    case Event::Kind::packets:
      return packets_due(event.t.at);
    case Event::Kind::outside:
      return passed_outside(event);
    case Event::Kind::post: {
      of_agents_ += event.message == MessageKind::note;
      Parcel parcel = held_.take(event.held);
      const int outbox = cluster_.shards() + parcel.flow;
      outboxes_.end_turn(outbox, event.flight != nullptr);
      hand_over(outbox, std::move(parcel));
      if (event.flight) posted(*event.flight, event.flight->actors[event.actor]);
      return;
    }
  }
}

NicRate Shard::rate_of(Nic nic) const {
  return {rates_ ? rates_->of(nic) : nullptr, cluster_.topology().nic(nic).ps_per_byte};
}

// Port::take_ingress of a message that may have come more slowly than the NIC takes it, or faster,
// and of NICs whose rates change. `head`: when its first byte came; kNotYet: its bytes came at the
// rate of the slower of its NICs.
[[gnu::noinline]] Moment Shard::enter_nic(Nic nic, const Event& event, Picoseconds head) {
  const Topology& topology = cluster_.topology();
  const Picoseconds tail = event.t.at;
  const Nic from = cluster_.location(sender_of(event)).nic;
  Port& port = nics_[nic];
  if (!rates_) {
    const Picoseconds duration = topology.nic(nic).serialise(event.bytes());
    if (head == kNotYet)
      head = tail - std::max(duration, topology.nic(from).serialise(event.bytes()));
    if (tail - head <= duration) return port.take_ingress(event.t, duration);
    return port.take_ingress(event.t, head, static_cast<double>(duration), AtOneRate{});
  }
  if (!rate_of(nic).limited()) return event.t;
  const Picoseconds latency = topology.path_latency(from, nic, topology.hops(from, nic));
  const auto bytes = static_cast<double>(nic_.on_wire(event.bytes()));
  const Picoseconds left = segment_.at - latency;
  const SlowerRate slower(rate_of(from), rate_of(nic), latency);
  const Picoseconds came = slower.duration_until(left + tail, bytes);
  const bool evenly = head != kNotYet && tail - head > came;
  if (head == kNotYet) head = tail - came;
  return port.take_ingress(event.t, head, bytes,
                           AtRates{SlowerRate(rate_of(nic)), slower, segment_.at, left, evenly});
}

[[gnu::noinline]] Picoseconds Shard::end_of_clock() {
  fail(
      "the run takes more than the 26 days that its emulated clock has: are rates, sizes and "
      "durations in the units that were meant?");
  window_end_ = 0;  // no event fires at a time that is not its own
  return kClockEnd;
}

void Shard::fail(const std::string& what, bool of_fabric) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->failure.empty()) {
    shared_->failure = what;
    shared_->of_fabric = of_fabric;
  }
  shared_->stop = true;
  for (Fabric* f : shared_->fabrics) f->wake();
}

}  // namespace ghostrank
