#include "emulator/shard.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <limits>
#include <tuple>

#include "emulator/assert.h"
#include "emulator/cores.h"
#include "emulator/host_facts.h"

namespace ghostrank {
namespace {

constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();
constexpr Picoseconds kStopped = -1;
constexpr Picoseconds kBeforeAll = std::numeric_limits<Picoseconds>::min() / 2;
constexpr int kEventsPerPass = 512;  // then the fabric has its turn again
constexpr int kEventsPerClockRead = 32;
constexpr std::size_t kRingLog2 = 14;
constexpr std::chrono::milliseconds kLongestSleep{50}, kLongRest{5};
// The kernel lets a wait for descriptors end late by a thousandth of its length, by a two-hundredth
// in a process that is niced: longer ones are cut short by a part of them, and what is left is
// waited for anew.
constexpr std::chrono::microseconds kExactSleep{500};
constexpr int kCut = 128;
// What is due so soon is waited for awake: without a core of one's own, and with one, which also
// lets a thread be awake before what is due.
constexpr std::chrono::microseconds kDueSoon{20}, kWakeUp{60};
constexpr std::size_t kScratchBytes = 256 << 10;  // stays in the cache
constexpr std::size_t kMaxPendingEvents = 1u << 27;
constexpr std::size_t kCachedEvents = 128;
constexpr std::size_t kFlightsAhead = 12, kActorsAhead = 6;  // a few memory latencies of events

double thread_cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Seconds this thread was runnable and not running; negative where the kernel does not tell.
double run_queue_seconds() {
  std::FILE* file = std::fopen("/proc/thread-self/schedstat", "r");
  if (!file) return -1;
  unsigned long long ran = 0, waited = 0;
  const int read = std::fscanf(file, "%llu %llu", &ran, &waited);
  std::fclose(file);
  return read == 2 ? static_cast<double>(waited) * 1e-9 : -1;
}

}  // namespace

ShardShared::ShardShared(int count)
    : shards(count),
      window(count),
      next(static_cast<std::size_t>(count)),
      mail(static_cast<std::size_t>(count * count)),
      quiet(static_cast<std::size_t>(count)) {
  for (int i = 0; i < count; ++i) asleep.push_back(std::make_unique<std::atomic<bool>>(false));
  for (int i = 0; i < count * count; ++i) {
    const bool to_another = i / count != i % count;
    rings.push_back(to_another ? std::make_unique<SpscRing<Parcel>>(kRingLog2) : nullptr);
  }
}

Shard::Shard(const Setup& setup)
    : spec_(setup.spec),
      workload_(setup.workload),
      cluster_(setup.cluster),
      host_(setup.host),
      index_(setup.index),
      flows_(setup.flows),
      cpus_(setup.cpus),
      fabric_(setup.fabric),
      packets_(setup.packets),
      nonce_(setup.nonce),
      nic_(setup.cluster.topology().own()),
      intra_(LinkSpeed::from_rate(setup.spec.cluster.intra_node.rate_bps,
                                  setup.spec.cluster.intra_node.latency)),
      virtual_(setup.spec.fabric.kind == FabricKind::virtual_time),
      copy_payload_(setup.spec.fabric.payload == PayloadMode::copied),
      reanchor_(!virtual_ && setup.spec.fabric.colocated == Colocated::memory),
      wired_(!setup.flows.of(setup.host, setup.index).empty()),
      model_nodes_(setup.spec.fabric.inside_node == InsideNode::model),
      schedules_(setup.spec, setup.workload, setup.cluster),
      agents_(
          setup.cluster, setup.cluster.ranks_of(setup.host, setup.index),
          setup.cluster.helpers_of(setup.host, setup.index), setup.spec.fabric.packets.mtu,
          setup.packets ? setup.packets->most_bytes() : setup.spec.fabric.packets.mtu - kUdpAndIp,
          *this),
      // By rank where every run must be alike.
      timers_(virtual_ ? TimerQueue<Event>::Ties::by_rank : TimerQueue<Event>::Ties::as_they_come),
      ledger_(1'000'000, setup.spill_path),
      max_spans_(setup.max_spans),
      spin_(awake_before_sleep(cluster_.hosts() * cluster_.shards())) {
  const std::vector<Rank>& mine = cluster_.ranks_of(host_, index_);
  const std::vector<Rank>& helpers = cluster_.helpers_of(host_, index_);
  players_ = mine.size();
  ranks_.resize(mine.size() + helpers.size());
  for (std::size_t i = 0; i < helpers.size(); ++i) {
    RankState& r = ranks_[players_ + i];
    r.id = helpers[i];
    r.local = static_cast<std::uint32_t>(players_ + i);
    r.nic = cluster_.place(r.id).nic;
  }
  for (const SchemeUse& use : cluster_.schemes()) scheme_row_.push_back(schedules_.row_of(use));
  sequences_.resize(mine.size() * workload_.group_names.size());
  std::vector<bool> traced(static_cast<std::size_t>(workload_.ranks));
  for (const Rank rank : setup.trace_ranks) traced[static_cast<std::size_t>(rank)] = true;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    RankState& r = ranks_[i];
    r.id = mine[i];
    r.local = static_cast<std::uint32_t>(i);
    r.role = &workload_.roles[workload_.role_of[static_cast<std::size_t>(r.id)]];
    r.nic = cluster_.place(r.id).nic;
    r.traced = traced[static_cast<std::size_t>(r.id)];
  }
  nics_.resize(static_cast<std::size_t>(cluster_.nics()));
  if (wired_) pace_.resize(nics_.size());
  if (copy_payload_) scratch_.resize(2 * kScratchBytes);
}

void Shard::prepare(const Segment& segment, ShardShared& shared) {
  segment_ = segment;
  shared_ = &shared;
  if (!cpus_.empty()) bind_this_thread(cpus_);
  stats_ = {};
  stats_.rows.resize(schedules_.rows().size());
  ledger_.clear();
  spans_.clear();
  std::fill(nics_.begin(), nics_.end(), Port{});
  std::fill(pace_.begin(), pace_.end(), Pace{});
  outbox_.resize(static_cast<std::size_t>(cluster_.shards()) +
                 flows_.of(host_, index_).size() * (packets_ ? 2 : 1));
  if (packets_) packets_before_ = packets_->stats();
  connections_.clear();
  agents_.clear();
  packets_of_.assign(cluster_.schemes().empty() ? 0 : ranks_.size(), 0);
  timers_.clear();
  meetings_.clear();
  open_.assign(segment_.count, {});
  for (std::uint32_t i = 0; i < segment_.count; ++i) open_[i].iteration = segment_.first + i;
  ranks_left_ = static_cast<std::uint32_t>(players_);
  if (players_ == 0) shared_->ended.fetch_add(1);
  now_ = kBeforeAll;  // so that nothing leaves for another process
  progressed_ = awaited_ = 0;
  threshold_ = stall_threshold(spec_, segment_.dilation);
  for (RankState& r : ranks_) {
    r.nvlink = {};
    if (r.local >= players_) continue;
    r.iteration = segment_.first;
    r.stop_at = segment_.first + segment_.count;
    begin_iteration(r, {});
  }
  for (std::size_t i = 0; i < players_; ++i) advance(ranks_[i]);
}

void Shard::play(const Clock& clock) {
  clock_ = clock;
  const double cpu = thread_cpu_seconds(), queued = run_queue_seconds();
  const std::int64_t began = monotonic_ns();
  looked_ns_ = began;
  if (virtual_) {
    run_virtual();
  } else {
    run_real();
  }
  for (RankState& r : ranks_) {  // after a stop: what was sent is counted all the same
    for (Flight* f : r.flights) {
      for (ActorState& a : f->actors) settle(*f, a.route);
    }
  }
  if (packets_) count_packets();
  for (const Pace& pace : pace_) stats_.pace_error += pace.last_late - pace.first_late;
  stats_.wall_seconds = static_cast<double>(monotonic_ns() - began) * 1e-9;
  stats_.cpu_seconds = thread_cpu_seconds() - cpu;
  stats_.run_queue_seconds = queued < 0 ? -1 : run_queue_seconds() - queued;
  if (!virtual_ && players_ > 0)  // agents served on after the last rank had ended
    stats_.wall_behind =
        std::max<Picoseconds>(0, (ranks_left_ == 0 ? ended_ : now_) - stats_.end.at);
}

// ---- The loop
// -----------------------------------------------------------------------------------------

// Real time: take what has arrived, fire what is due, hand over what had no room, else sleep until
// one of them may have changed.
void Shard::run_real() {
  while (!finished() && !stopped()) {
    if (ranks_left_ > 0) ended_ = now_;
    bool busy = take_arrivals();
    busy |= fire_due();
    busy |= flush();
    if (agents_.wants_room()) agents_.give_room({now_, 0});
    busy ? note_progress() : sleep();
  }
  note_end();
}

// Virtual time: the next event is now. Several shards agree on a window no longer than the latency
// between nodes, in which nothing that one does can reach another; what they sent is exchanged
// before the next.
void Shard::run_virtual() {
  const auto shards = static_cast<std::size_t>(shared_->shards);
  const Picoseconds lookahead = shards > 1 ? cluster_.topology().least_latency() : kNever;
  const auto self = static_cast<std::size_t>(index_);
  for (;;) {
    for (std::size_t from = 0; from < shards; ++from) {
      for (Parcel& p : shared_->mail[from * shards + self]) take_over(std::move(p));
      shared_->mail[from * shards + self].clear();
    }
    shared_->next[self] = stopped() ? kStopped : timers_.empty() ? kNever : timers_.next();
    shared_->window.arrive_and_wait();
    Picoseconds first = kNever;
    for (const auto& n : shared_->next) first = std::min(first, n.load(std::memory_order_relaxed));
    if (first == kNever || first == kStopped) break;
    const Picoseconds end = first < kNever - lookahead ? first + lookahead : kNever;
    for (std::uint32_t n = 0; !timers_.empty() && timers_.next() < end; ++n) {
      if (n % 65536 == 65535 && stopped()) break;
      now_ = timers_.next();
      Event& event = pop();
      timers_.first_is_at(now_, event.rank) ? fire_tied(event) : fire(event);
    }
    shared_->window.arrive_and_wait();
  }
  if (!stopped() && ranks_left_ > 0) fail("deadlock: " + what_is_stuck());
}

bool Shard::finished() const {
  return ranks_left_ == 0 && posts_ == 0 && outbox_size_ == 0 && fabric_.idle() &&
         (!packets_ || packets_->idle()) &&
         (!agents_.serves() || shared_->at_rest.load(std::memory_order_relaxed));
}

bool Shard::take_arrivals() {
  bool any = false;
  if (wired_) {
    // Between two looks nobody moves what the kernel holds; during one the fabric itself is at
    // work.
    const std::int64_t away_ns = monotonic_ns() - looked_ns_;
    poll_lag_ = static_cast<Picoseconds>(static_cast<double>(away_ns) * 1000 / segment_.dilation);
    fabric_.poll(arrived_);
    looked_ns_ = monotonic_ns();
    if (!fabric_.failure().empty()) fail(fabric_.failure(), true);
    now_ = clock_.now();
    for (Message& m : arrived_) arrive_from_wire(std::move(m));
    any |= !arrived_.empty();
    arrived_.clear();
    const std::uint64_t moved = fabric_.stats().moved;
    any |= moved != moved_;
    moved_ = moved;
    if (packets_) any |= take_packets();
  }
  for (int from = 0; from < shared_->shards; ++from) {
    if (from == index_) continue;
    SpscRing<Parcel>& ring =
        *shared_->rings[static_cast<std::size_t>(from * shared_->shards + index_)];
    Parcel p;
    for (int n = 0; n < kEventsPerPass && ring.try_pop(p); ++n, any = true) take_over(std::move(p));
  }
  return any;
}

bool Shard::fire_due() {
  now_ = clock_.now();
  int fired = 0;
  while (fired < kEventsPerPass && !timers_.empty() && timers_.next() <= now_) {
    fire(pop());
    if (++fired % kEventsPerClockRead == 0) now_ = clock_.now();
  }
  return fired > 0;
}

void Shard::sleep() {
  const std::int64_t began = monotonic_ns();
  auto timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(kLongestSleep);
  if (packets_) packets_->flush();
  if (outbox_size_ > 0 || (packets_ && !packets_->idle()))
    timeout = std::chrono::microseconds(20);  // a full ring empties without telling
  if (!timers_.empty()) {
    timeout =
        std::min(timeout, clock_.wall(std::max<Picoseconds>(0, timers_.next() - clock_.now())));
  } else if (!wired_ && cluster_.shards() == 1 && ranks_left_ > 0) {
    return fail("deadlock: " + what_is_stuck());
  }
  note_rest();
  if (timeout > kLongRest) timers_.trim();
  auto& asleep = *shared_->asleep[static_cast<std::size_t>(index_)];
  if (shared_->shards > 1) {
    // Whoever pushes swaps this flag after the push: either the ring shows the event below, or we
    // are woken.
    asleep.exchange(true);
    for (int from = 0; from < shared_->shards; ++from) {
      if (from == index_) continue;
      SpscRing<Parcel>& ring =
          *shared_->rings[static_cast<std::size_t>(from * shared_->shards + index_)];
      Parcel p;
      if (ring.try_pop(p)) {
        take_over(std::move(p));
        timeout = std::chrono::nanoseconds(0);
      }
    }
  }
  // What is due sooner than one could sleep and wake up is waited for awake, whoever wants the
  // core; with a core of its own the shard is awake before what is due.
  const std::chrono::nanoseconds awake = spin_.count() > 0 ? kWakeUp : kDueSoon;
  if (timeout > kExactSleep) timeout -= timeout / kCut;
  if (spin_.count() > 0 && timeout > awake) timeout -= awake;
  if (timeout.count() > 0) fabric_.wait(timeout, timeout <= awake ? timeout : spin_);
  if (shared_->shards > 1) asleep.exchange(false);
  looked_ns_ = monotonic_ns();
  stats_.idle_seconds += static_cast<double>(looked_ns_ - began) * 1e-9;
}

// ---- Events
// ---------------------------------------------------------------------------------------------

// The place in the queue of a new event, whose other fields the caller sets, each of them: what
// they hold is old.
Event& Shard::schedule(Event::Kind kind, Moment t, std::uint32_t rank) {
  GHOSTRANK_ASSERT(timers_.size() < kMaxPendingEvents);
  Event& e =
      kind == Event::Kind::compute_done ? timers_.push_far(t.at, rank) : timers_.push(t.at, rank);
  e.t.slip = t.slip;
  e.kind = kind;
  return e;
}

void Shard::schedule(const Event& event) {
  Event& e = schedule(event.kind, event.t, event.rank);
  const std::uint32_t order = e.order;
  e = event;
  e.order = order;
}

// By which a message comes in: of all NICs of the cluster.
std::size_t Shard::nic_of(const RankState& r, const Event& e) const {
  if (e.via == 0) return static_cast<std::size_t>(r.nic);
  return static_cast<std::size_t>(cluster_.place(r.id).node * cluster_.nics_per_node() + e.via - 1);
}

// From another shard of the process.
void Shard::take_over(Parcel parcel) {
  Event event = parcel.event;
  event.flight = nullptr;  // the sender's
  if (parcel.message.payload) event.held = held_.put(std::move(parcel));
  schedule(event);
}

// The cache gets what the events behind the next one will touch, if it has not got it.
void Shard::prefetch() const {
  if (const Event* later = timers_.ahead(kFlightsAhead)) __builtin_prefetch(later->flight);
  if (const Event* soon = timers_.ahead(kActorsAhead); soon && soon->flight) {
    const auto* actor = reinterpret_cast<const char*>(soon->flight->actors.data());
    for (std::size_t line = 0; line <= sizeof(ActorState); line += 64)  // begins anywhere in one
      __builtin_prefetch(actor + line);
  }
}

Event& Shard::pop() {
  if (timers_.size() >= kCachedEvents) prefetch();
  return timers_.pop();
}

// What falls on one time at one rank: by sender, and each sender's in the order in which it was
// sent. Not in the order in which it was pushed: what comes from other shards is pushed later.
[[gnu::noinline]] void Shard::fire_tied(const Event& first) {
  const Picoseconds at = first.t.at;
  const std::uint32_t rank = first.rank;
  tied_.assign(1, {sender_of(first), first});
  while (timers_.first_is_at(at, rank)) {
    const Event& event = timers_.pop();
    tied_.push_back({sender_of(event), event});
  }
  // Of one sender and kind, both runs of pushes keep the order in which they were sent.
  const auto before = [](const Tied& a, const Tied& b) {
    return std::tuple(a.sender, a.event.kind, a.event.message) <
           std::tuple(b.sender, b.event.kind, b.event.message);
  };
  if (tied_.size() > 2)
    std::stable_sort(tied_.begin(), tied_.end(), before);
  else if (before(tied_[1], tied_[0]))
    std::swap(tied_[0], tied_[1]);
  for (Tied& tied : tied_) fire(tied.event);
}

// The rank that sent a message; kNoRank: the event is its rank's own.
Rank Shard::sender_of(const Event& e) const {
  const bool message = e.kind == Event::Kind::ingress || e.kind == Event::Kind::arrival ||
                       e.kind == Event::Kind::delivery;
  if (!message) return kNoRank;
  if (e.message == MessageKind::note) return cluster_.party(cluster_.schemes()[e.group], e.source);
  const auto& members = workload_.groups[e.group & ~kPointToPoint].members;
  return members[static_cast<std::size_t>(e.source)];
}

void Shard::fire(Event& event) {
  ++stats_.events;
  RankState& r = ranks_[event.rank];
  switch (event.kind) {
    case Event::Kind::compute_done: {
      if (!virtual_) {
        const auto late = static_cast<double>(now_ - event.t.at) * 1e-3 * segment_.dilation;
        stats_.lateness_ns.add(late > 0 ? static_cast<std::uint64_t>(late) : 0);
      }
      StreamState& s = r.streams[event.via];
      s.now = event.t;
      s.phase = StreamState::Phase::ready;
      return advance(r);
    }
    case Event::Kind::ingress: {
      const std::size_t nic = nic_of(r, event);
      const bool note = event.message == MessageKind::note;
      const LinkSpeed& speed = note ? cluster_.topology().nic(static_cast<int>(nic)) : nic_;
      const Picoseconds d = speed.serialise(event.bytes);
      Port& port = nics_[nic];
      const Picoseconds in = port.take_ingress(event.t.at, d);
      event.kind = Event::Kind::arrival;
      if (port.must_queue(event.t.at, in)) {
        event.t.at = in;
        return schedule(event);
      }
      return note ? note_arrived(event) : arrive(r, event);
    }
    case Event::Kind::arrival:
      if (event.message == MessageKind::note) return note_arrived(event);
      return arrive(r, event);
    case Event::Kind::delivery:
      return arrive(r, event);
    case Event::Kind::timer:
      return agents_.on_timer({event.rank, event.group}, event.sequence, event.bytes, event.t);
    case Event::Kind::call_done:
      return end_calls(event.flight, event.t);
    case Event::Kind::post: {
      Parcel parcel = held_.take(event.held);
      const int lane = cluster_.shards() + parcel.flow;
      if (!event.flight) --outbox_[static_cast<std::size_t>(lane)].posts;
      --posts_;
      hand_over(lane, std::move(parcel));
      if (event.flight) posted(*event.flight, event.flight->actors[event.actor]);
      return;
    }
  }
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
