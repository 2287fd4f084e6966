#include "emulator/player.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <sys/resource.h>
#include <thread>
#include <utility>

#include "emulator/common/blob.h"
#include "emulator/common/log.h"
#include "emulator/common/monotonic.h"
#include "emulator/engine_threads.h"
#include "emulator/host/cpu_quota.h"
#include "emulator/host/host_facts.h"
#include "emulator/published.h"
#include "emulator/segment_series.h"
#include "emulator/slice/outside.h"
#include "profiles/job/events.h"

namespace ghostrank {
namespace {

constexpr std::int64_t kWakeNs = 500'000;  // from a notification until its thread runs
constexpr std::chrono::milliseconds kLook{100};
constexpr double kPulseSeconds = 0.1;
constexpr double kSilence = 1e12;  // one second of wall time, in picoseconds
constexpr double kDeadlock = 2;    // seconds; if all threads wait for so long, they wait for ever
constexpr double kLongestLookAway = 1;  // seconds: kLook plus the delay that a busy machine adds
constexpr std::chrono::milliseconds kLookAtEnd{2};  // while only other processes still play
constexpr int kQuietRounds = 10;  // of kLookAtEnd at least, without a packet sent or received

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

// When an event kills the process; JobEvent::kEver: none does.
Picoseconds killing_of(const JobSpec& spec, Host host) {
  Picoseconds at = JobEvent::kEver;
  if (spec.events)
    for (const JobEvent& event : spec.events->all)
      if (event.kind == JobEvent::Kind::kill && event.host == host) at = std::min(at, event.at);
  return at;
}

}  // namespace

Player::Player(const JobSpec& spec, const Workload& workload, const Cluster& cluster,
               Ensemble& ensemble, Control& control, std::vector<std::unique_ptr<Shard>> shards)
    : spec_(spec),
      workload_(workload),
      ensemble_(ensemble),
      control_(control),
      host_(control.world().host()),
      virtual_(spec.fabric.kind == FabricKind::virtual_time),
      serves_(!cluster.schemes().empty()),
      cluster_(cluster),
      killed_at_(killing_of(spec, host_)),
      ranks_of_role_(workload.roles.size()),
      shards_(std::move(shards)) {
  for (const CountedInterface& counted : ensemble.interfaces) interface_logs_.emplace_back(counted);
  local_ranks_.resize(jobs_of(workload));
  for (int s = 0; s < cluster.shards(); ++s)
    for (const WorldRank rank : cluster.ranks_of(host_, s)) {
      ++ranks_of_role_[workload.role_of[rank]];
      ++local_ranks_[job_of(workload, rank)];
    }
  if (cluster.is_slice() && cluster.location(cluster.first_played()).host == host_)
    ++local_ranks_[0];
}

double Player::ops_of(const Segment& segment) const {
  double ops = 0;
  for (std::uint32_t i = segment.first; i < segment.first + segment.count; ++i) {
    for (std::size_t role = 0; role < ranks_of_role_.size(); ++role) {
      const Role& own = workload_.roles[role];
      if (ranks_of_role_[role] == 0) continue;
      if (i - segment.first >= segment.count_of(own.job)) continue;
      const auto wanted = segment.program == kInOrder ? program_number(workload_, own, i)
                                                      : static_cast<std::size_t>(segment.program);
      const auto& programs = own.iterations;
      for (const OpList& stream : programs[std::min(wanted, programs.size() - 1)].streams)
        ops += static_cast<double>(stream.size()) * ranks_of_role_[role];
    }
  }
  return ops;
}

SegmentReport Player::play(const Segment& segment, Callbacks callbacks) {
  missing_.clear();
  if (!chooser_) return play_whole(segment, std::move(callbacks));
  Segment one_by_one = segment;
  return play_parts(
      one_by_one,
      [&](std::uint32_t played, Picoseconds) { return played < segment.count ? 1U : 0U; },
      callbacks);
}

SegmentReport Player::play_parts(Segment& segment, const NextPart& next,
                                 const Callbacks& callbacks) {
  missing_.clear();
  SegmentSeries series;
  std::uint32_t played = 0;
  if (chooser_) chooser_->begin(segment.dilation);
  while (control_.stop() == Stop::none) {
    const std::uint32_t count = next(played, series.end());
    if (count == 0) break;
    if (chooser_) chooser_->choose();
    Segment part = segment;
    part.first += played;
    part.count = count;
    part.at = series.end();
    SegmentReport sum =
        play_whole(part, {[&](std::size_t job, int index, IterationReport report) {
                            report.earliest_end += seconds(part.at);
                            callbacks.iteration(job, static_cast<int>(played) + index, report);
                          },
                          [&](double iterations) { callbacks.progress(played + iterations); }});
    if (chooser_) chooser_->measured(sum.call_seconds);
    series.add(std::move(sum), static_cast<int>(count), reports_, std::move(stalls_),
               segment.dilation);
    played += count;
  }
  segment.count = played;
  reports_ = series.take_reports();
  stalls_ = series.take_stalls();
  return series.take_sum();
}

SegmentReport Player::play_whole(const Segment& segment, Callbacks callbacks) {
  segment_ = segment;
  segment_.number = ++played_;
  callbacks_ = std::move(callbacks);
  ops_ = ops_of(segment);
  jobs_.assign(jobs_of(workload_), {});
  stalls_.clear();
  arriving_.assign(control_.world().size, {});
  const Crossings* crossings = play_outside();
  const double cpu = cpu_seconds();
  began_ns_ = monotonic_ns();
  throttled_before_ = throttled_seconds();
  log_info("segment ", segment_.number, " begins: iterations ", segment_.first, " to ",
           segment_.first + segment_.count - 1, ", dilation ", segment_.dilation,
           segment_.verify ? ", verified" : "");
  looked_ = pulsed_ = 0;
  watch_.reset();
  if (host_ == Host(0) && !virtual_) {
    watch_.emplace(segment_.first, control_.world().size,
                   static_cast<Picoseconds>(kSilence / segment_.dilation));
  }
  try {
    ShardShared shared(static_cast<int>(shards_.size()));
    for (auto& f : ensemble_.fabrics) shared.fabrics.push_back(f.get());
    shared.crossings = crossings;
    for (InterfaceLog& log : interface_logs_) log.begin();
    if (control_.stop() == Stop::none) play_shards(shared);
    return gather(report(cpu));
  } catch (const std::bad_alloc&) {
    control_.fail(kOutOfMemory, Stop::machine);
    reports_.clear();
    return {};
  }
}

// Returns what comes to a slice in the segment; null: all is played here, or the run was stopped.
const Crossings* Player::play_outside() {
  if (!outside_ || control_.stop() != Stop::none) return nullptr;
  try {
    return &outside_->play(segment_, control_);
  } catch (const std::bad_alloc&) {
    control_.fail(kOutOfMemory, Stop::machine);
    return nullptr;
  }
}

// This process's report.
SegmentReport Player::report(double cpu_before) {
  SegmentReport mine;
  mine.host = ensemble_.hosts[host_.index()];
  std::uint64_t strays = 0;
  for (std::size_t s = 0; s < shards_.size(); ++s) {
    mine.add(*shards_[s], shards_[s]->take_spans());
    strays += ensemble_.fabrics[s]->stats().strays;
    if (const std::string& why = shards_[s]->ledger().failure(); !why.empty()) control_.fail(why);
  }
  mine.strays = strays - std::exchange(strays_told_, strays);
  const std::optional<double> throttled = throttled_seconds();
  mine.throttled = !throttled || !throttled_before_
                       ? -1
                       : (*throttled - *throttled_before_) /
                             (static_cast<double>(monotonic_ns() - began_ns_) * 1e-9);
  mine.host.rss_bytes = resident_bytes();
  mine.host.cpu_seconds = cpu_seconds() - cpu_before;
  for (InterfaceLog& log : interface_logs_) mine.interfaces.push_back(log.end(host_));
  return mine;
}

// The clock of the segment. Its zero is the same instant on every host: the earliest by which all
// of them know it.
Clock Player::start_clock() {
  if (virtual_) return Clock::virtual_time();
  std::int64_t delay = kWakeNs;
  if (control_.world().size > 1) {
    control_.all_gather({});  // barrier: all processes have prepared
    const std::int64_t asked = monotonic_ns();
    control_.all_gather({});
    delay += 2 * (monotonic_ns() - asked);
  }
  BlobWriter mine;
  mine.put(monotonic_ns() + delay);
  std::int64_t zero = monotonic_ns();
  const std::vector<std::string> all = control_.all_gather(mine.bytes());
  if (!all.empty()) BlobReader(all[0]).get(zero);
  return Clock::real(zero + control_.clock_offset_ns(), segment_.dilation);
}

void Player::play_shards(ShardShared& shared) {
  EngineThreads threads(shards_, segment_, shared, control_, spec_);
  threads.wait_until_prepared();
  clock_ = start_clock();
  threads.go(clock_);
  for (std::unique_lock lock(shared.mutex); shared.running > 0;) {
    const std::chrono::nanoseconds look_in =
        serves_ && shared.ended == shared.shards ? kLookAtEnd : kLook;
    shared.changed.wait_for(lock, std::min(look_in, until_killed()),
                            [&] { return shared.running == 0 || !shared.finished.empty(); });
    lock.unlock();
    die_if_killed();
    look(shared, false);
    if (serves_) let_rest(shared);
    lock.lock();
  }
  threads.join();
  look(shared, true);
  // Other processes may still play, and stall: process 0 watches until all have ended.
  while (watch_ && !watch_->all_ended() && control_.stop() == Stop::none) {
    std::this_thread::sleep_for(kLookAtEnd);
    look(shared, true);
  }
}

// The wall time until an event kills this process, or a part of it.
std::chrono::nanoseconds Player::until_killed() const {
  if (killed_at_ == JobEvent::kEver || !segment_.measured) return std::chrono::nanoseconds::max();
  const Picoseconds left = killed_at_ - segment_.at - clock_.now();
  return clock_.wall(std::clamp<Picoseconds>(left, 0, kPicosPerSecond));
}

// A process that dies closes nothing and tells nobody.
void Player::die_if_killed() const {
  if (until_killed().count() > 0) return;
  log_warn("an event kills this process");
  raise(SIGKILL);
}

// Ends the shards of a job with agents. Agents serve until the last rank of the job has ended and
// all notes have arrived, so that nothing is in flight between segments. Nobody knows whether a
// packet between processes will still arrive: after kQuietRounds rounds without any, missing
// packets count as lost, and a later arrival is dropped as a stray.
void Player::let_rest(ShardShared& shared) {
  if (virtual_ || shared.at_rest || shared.ended < shared.shards) return;
  const std::uint32_t end = segment_.first + segment_.count;
  if (host_ == Host(0) && all_reported() && control_.told() != end) control_.tell(end);
  if (control_.told() != end) return;
  struct Notes {
    std::uint64_t sent, received;
    std::int64_t open;
    std::uint64_t packets;  // sent and received so far
    bool operator==(const Notes&) const = default;
  };
  Notes before{1, 0, 0, 0};
  const std::int64_t asked = monotonic_ns();
  int quiet = 0;  // rounds without a change; every process counts alike
  for (;;) {
    BlobWriter mine;
    mine.put(Notes{shared.notes_sent, shared.notes_received, shared.notes_open,
                   shared.packets_sent + shared.packets_received});
    const std::vector<std::string> all = control_.all_gather(mine.bytes());
    if (all.empty()) return;  // the run was stopped
    Notes sum{};
    for (const std::string& blob : all) {
      Notes theirs{};
      BlobReader(blob).get(theirs);
      sum = {sum.sent + theirs.sent, sum.received + theirs.received, sum.open + theirs.open,
             sum.packets + theirs.packets};
    }
    quiet = sum == before ? quiet + 1 : 0;
    const bool enough = quiet >= (sum.packets > 0 ? kQuietRounds : 1);
    if (enough && sum.sent == sum.received && sum.open == 0) break;
    if (static_cast<double>(monotonic_ns() - asked) * 1e-9 > spec_.run.stall_timeout_s)
      return control_.fail("agents do not come to rest: after the last iteration " +
                           std::to_string(sum.open) + " notes are under way within processes, " +
                           std::to_string(sum.sent - sum.received) + " between them");
    before = sum;
    std::this_thread::sleep_for(kLookAtEnd);
  }
  shared.at_rest = true;
  for (Fabric* f : shared.fabrics) f->wake();
}

// One round of the main thread: passes on finished iterations, failures and pulses.
void Player::look(ShardShared& shared, bool ended) {
  std::vector<IterationSums> finished;
  std::string failure;
  bool of_fabric = false, of_machine = false;
  {
    const std::lock_guard lock(shared.mutex);
    finished.swap(shared.finished);
    failure = shared.failure;
    shared.failure.clear();  // clear() keeps the capacity, which a failure without memory needs
    of_fabric = shared.of_fabric;
    of_machine = shared.of_machine;
  }
  publish(finished);  // before fail(): the other processes stop as soon as they hear of it
  if (!failure.empty()) {
    if (of_fabric) let_control_speak();
    control_.fail(failure, of_machine ? Stop::machine : Stop::failed);
  }
  const bool due = seconds(clock_.now() - pulsed_) * segment_.dilation >= kPulseSeconds;
  if (!virtual_ && (ended || due)) publish_pulse(shared, ended);
  if (host_ != Host(0)) return;
  take_published();
  if (watch_) end_a_stall();
  const auto ops = static_cast<double>(shared.ops.load(std::memory_order_relaxed));
  callbacks_.progress(segment_.count * ops / std::max(1.0, ops_));
}

// When a host dies, the fabric reports a connection reset; the control plane reports the same and
// names the host. Both notice at about the same time and the first reason counts, so let the
// control plane speak first: wait up to 0.4 s.
void Player::let_control_speak() const {
  for (int naps = 0; naps < 200 && control_.stop() == Stop::none; ++naps)
    std::this_thread::sleep_for(kLookAtEnd);
}

void Player::publish(const std::vector<IterationSums>& finished) {
  for (const IterationSums& one : finished) {
    IterationSums& sum = jobs_[one.job].open[one.iteration];
    sum.iteration = one.iteration;
    sum.job = one.job;
    sum.merge(one);
    if (sum.ranks < local_ranks_[one.job]) continue;
    for (InterfaceLog& log : interface_logs_) log.mark();
    BlobWriter w;
    w.put(Published::iteration), w.put(sum);
    control_.publish(w.bytes());
    jobs_[one.job].open.erase(one.iteration);
  }
}

// Publishes whether this process stands still; it is quiet if all its shards are.
void Player::publish_pulse(ShardShared& shared, bool ended) {
  pulsed_ = clock_.now();
  Pulse pulse;
  pulse.segment = segment_.first;
  pulse.ended = ended;
  pulse.quiet = true;
  {
    const std::lock_guard lock(shared.mutex);
    for (const ShardShared::Quiet& q : shared.quiet) {
      pulse.quiet &= q.is;
      pulse.since = std::max(pulse.since, q.since);
      if (!q.stuck.empty()) pulse.stuck += (pulse.stuck.empty() ? "" : "; ") + q.stuck;
    }
  }
  BlobWriter w;
  w.put(Published::pulse);
  control_.publish(w.bytes() + pulse.to_blob());
}

bool Player::take_iteration(BlobReader& r) {
  IterationSums one;
  r.get(one);
  if (!r.complete() || one.job >= jobs_.size() ||
      one.iteration - segment_.first >= segment_.count_of(one.job))
    return false;
  IterationSums& sum = jobs_[one.job].whole[one.iteration];
  sum.iteration = one.iteration;
  sum.merge(one);
  return true;
}

bool Player::take_pulse(Host host, BlobReader& r) {
  Pulse pulse;
  if (!pulse.read(r)) return false;
  if (watch_) watch_->note(host, pulse, clock_.now());
  return true;
}

void Player::take_published() {
  for (const auto& [host, blob] : control_.take_published()) {
    BlobReader r(blob);
    Published kind{};
    r.get(kind);
    if (kind == Published::report) {
      arriving_[host].pieces.append(blob, sizeof kind);
      arriving_[host].whole = blob.size() == sizeof kind;
      continue;
    }
    const bool taken = kind == Published::iteration ? take_iteration(r)
                       : kind == Published::pulse   ? take_pulse(Host(host), r)
                                                    : false;
    if (!taken) return control_.fail(malformed_from(Host(host), "message during the run"));
  }
  for (std::size_t job = 0; job < jobs_.size(); ++job) report_iterations(job);
}

// Reports the job's iterations in order: one is over when every rank of the job has ended it.
void Player::report_iterations(std::size_t job) {
  JobSums& own = jobs_[job];
  const bool slice = cluster_.is_slice();
  const int played = slice ? cluster_.ranks_played() : ranks_of(workload_, job);
  const int all = slice ? played + 1 : played;  // with the outside
  const double ranks = played, trainers = slice ? played : played - workload_.servers;
  for (;;) {
    const auto index = static_cast<std::uint32_t>(own.ends.size());
    const auto found = own.whole.find(segment_.first + index);
    if (found == own.whole.end()) return;
    const IterationSums& sums = found->second;
    if (sums.ranks < static_cast<std::uint32_t>(all)) return;
    IterationReport i;
    const Moment before = own.ends.empty() ? Moment{} : own.ends.back();
    i.seconds = seconds(sums.end.at - before.at);
    i.late_seconds = seconds(sums.end.slip - before.slip);
    i.compute_seconds = sums.compute.seconds() / trainers;
    i.exposed_comm_seconds = sums.exposed.seconds() / trainers;
    i.bubble_seconds = sums.bubble.seconds() / trainers;
    i.rank_seconds = sums.lasted.seconds() / ranks;
    i.rank0_seconds = seconds(sums.rank0);
    i.earliest_end = seconds(sums.earliest);
    own.ends.push_back(sums.end);
    own.steps.push_back(i.seconds);
    own.late.push_back(i.late_seconds);
    own.whole.erase(found);
    callbacks_.iteration(job, static_cast<int>(index), i);
  }
}

// The first job that plays.
const Player::JobSums& Player::first_job() const {
  return jobs_[segment_.job == kEveryJob ? 0 : static_cast<std::size_t>(segment_.job)];
}

bool Player::all_reported() const {
  for (std::size_t job = 0; job < jobs_.size(); ++job)
    if (jobs_[job].ends.size() < segment_.count_of(job)) return false;
  return true;
}

// Process 0 ends a job that has stood still for too long.
void Player::end_a_stall() {
  const Picoseconds now = clock_.now();
  const Picoseconds away = now - std::exchange(looked_, now);
  const std::optional<Picoseconds> since = watch_->quiet_since(now);
  if (!since || watch_->all_ended() || control_.stop() != Stop::none) return;
  // This process itself was held up and has not read the other processes' pulses yet.
  if (seconds(away) * segment_.dilation > kLongestLookAway) return;
  const double stood = seconds(now - *since) * segment_.dilation;
  // In one process without a network nobody else can move anything, except agents that send again.
  const bool alone =
      spec_.fabric.kind == FabricKind::memory && control_.world().size == 1 && !serves_;
  if (stood < (alone ? std::min(kDeadlock, spec_.run.stall_timeout_s) : spec_.run.stall_timeout_s))
    return;
  report_stall({*since, now});
  char text[64] = "deadlock: ";
  if (!alone) std::snprintf(text, sizeof text, "stalled for %.1f s (run.stall_timeout_s): ", stood);
  control_.fail(text + watch_->who_is_stuck(now));
}

void Player::report_stall(const Gap& gap) {
  StallReport stall;
  stall.start_s = seconds(gap.from);
  stall.seconds = seconds(gap.to - gap.from);
  stall.wall_start_s = stall.start_s * segment_.dilation;
  stall.wall_seconds = stall.seconds * segment_.dilation;
  // Iteration ends.size() is still running: it follows the last one that ended.
  const std::vector<Moment>& ends = first_job().ends;
  for (std::size_t i = 0; i <= ends.size() && i < segment_.count; ++i) {
    const Picoseconds begin = i == 0 ? 0 : ends[i - 1].at;
    const Picoseconds end = i < ends.size() ? ends[i].at : kEndless;
    if (gap.from < end && gap.to > begin) stall.iterations.push_back(static_cast<int>(i));
  }
  log_warn("stall: nothing moved for ", stall.wall_seconds, " s, from ", stall.wall_start_s,
           " s after the start of segment ", segment_.number);
  stalls_.push_back(std::move(stall));
}

}  // namespace ghostrank
