#include "emulator/player.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <sys/resource.h>
#include <thread>

#include "emulator/blob.h"
#include "emulator/host_facts.h"

namespace ghostrank {
namespace {

constexpr std::int64_t kStartDelayNs = 20'000'000;  // longer than a start signal travels
constexpr auto kLook = std::chrono::milliseconds(100);

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

// Processes of one build and job understand each other, or one of them is not what it seems.
std::string malformed(int host, const std::string& what) {
  return "host " + std::to_string(host) + " sent a malformed " + what +
         "; check that every host runs the same ghostrank";
}

}  // namespace

Player::Player(const JobSpec& spec, const Workload& workload, const Cluster& cluster,
               Ensemble& ensemble, Control& control, std::vector<std::unique_ptr<Shard>> shards)
    : spec_(spec),
      workload_(workload),
      ensemble_(ensemble),
      control_(control),
      host_(control.world().rank),
      shards_(std::move(shards)) {
  for (int s = 0; s < cluster.shards(); ++s) {
    local_ranks_ += static_cast<std::uint32_t>(cluster.ranks_of(host_, s).size());
  }
}

SegmentReport Player::segment(int first, int count, double dilation, Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  first_ = static_cast<std::uint32_t>(first);
  count_ = static_cast<std::uint32_t>(count);
  reported_ = 0;
  open_parts_.clear();
  whole_parts_.clear();
  previous_end_ = {};
  const double cpu = cpu_seconds();
  const auto counters = read_interfaces(host_);
  const Clock clock = start_clock(dilation);
  ShardShared shared(static_cast<int>(shards_.size()));
  for (auto& f : ensemble_.fabrics) shared.fabrics.push_back(f.get());
  if (control_.stop() == Stop::none) play_shards(clock, dilation, shared);

  SegmentReport mine;
  mine.host = ensemble_.hosts[static_cast<std::size_t>(host_)];
  for (std::size_t s = 0; s < shards_.size(); ++s) {
    mine.add(*shards_[s], shards_[s]->take_spans());
    mine.strays += ensemble_.fabrics[s]->stats().strays;
  }
  mine.host.rss_bytes = resident_bytes();
  mine.host.cpu_seconds = cpu_seconds() - cpu;
  mine.interfaces = difference(counters, read_interfaces(host_));
  return gather(mine);
}

// Emulated time zero, the same instant on every host.
Clock Player::start_clock(double dilation) {
  if (spec_.fabric.kind == FabricKind::virtual_time) return Clock::virtual_time();
  BlobWriter mine;
  mine.put(monotonic_ns() + kStartDelayNs);
  std::int64_t zero = monotonic_ns();
  const std::vector<std::string> all = control_.all_gather(mine.bytes());
  if (!all.empty()) BlobReader(all[0]).get(zero);
  return Clock::real(zero + control_.clock_offset_ns(), dilation);
}

void Player::play_shards(const Clock& clock, double dilation, ShardShared& shared) {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t running = shards_.size();
  std::vector<std::thread> threads;
  for (auto& shard : shards_) {
    threads.emplace_back([&, s = shard.get()] {
      s->play(first_, count_, clock, dilation, shared);
      const std::lock_guard lock(mutex);
      --running;
      changed.notify_one();
    });
  }
  for (std::unique_lock lock(mutex); running > 0;) {
    changed.wait_for(lock, kLook, [&] { return running == 0; });
    lock.unlock();
    look(shared);
    lock.lock();
  }
  for (std::thread& t : threads) t.join();
  look(shared);
}

// Between two naps of the main thread: pass on what ended, what failed, what was stopped.
void Player::look(ShardShared& shared) {
  std::vector<IterationPart> parts;
  std::string failure;
  {
    const std::lock_guard lock(shared.mutex);
    parts.swap(shared.parts);
    failure.swap(shared.failure);
  }
  if (!failure.empty()) control_.fail("host " + std::to_string(host_) + ": " + failure);
  if (control_.stop() != Stop::none && !shared.stop.exchange(true)) {
    for (Fabric* f : shared.fabrics) f->wake();
  }
  publish(parts);
  if (host_ != 0) return;
  take_published();
  const auto steps = static_cast<double>(shared.steps.load(std::memory_order_relaxed));
  callbacks_.progress(steps / std::max<std::uint32_t>(1, local_ranks_));
}

void Player::publish(const std::vector<IterationPart>& parts) {
  for (const IterationPart& part : parts) {
    IterationPart& sum = open_parts_[part.iteration];
    sum.iteration = part.iteration;
    sum.merge(part);
    if (sum.ranks < local_ranks_) continue;
    BlobWriter w;
    w.put(sum);
    control_.publish(w.bytes());
  }
}

void Player::take_published() {
  for (const auto& [host, blob] : control_.take_published()) {
    IterationPart part;
    BlobReader r(blob);
    r.get(part);
    if (!r.complete() || part.iteration - first_ >= count_) {
      control_.fail(malformed(host, "part of an iteration"));
      return;
    }
    IterationPart& sum = whole_parts_[part.iteration];
    sum.iteration = part.iteration;
    sum.merge(part);
  }
  // In order: an iteration is over when every rank of the job has ended it.
  for (; reported_ < count_; ++reported_) {
    const auto found = whole_parts_.find(first_ + reported_);
    if (found == whole_parts_.end()) return;
    const IterationPart& part = found->second;
    if (part.ranks < static_cast<std::uint32_t>(workload_.ranks)) return;
    const double ranks = workload_.ranks;
    IterationReport i;
    i.seconds = seconds(part.end.at - previous_end_.at);
    i.compute_seconds = seconds(part.compute) / ranks;
    i.exposed_comm_seconds = seconds(part.exposed) / ranks;
    i.bubble_seconds = seconds(part.bubble) / ranks;
    previous_end_ = part.end;
    callbacks_.iteration(static_cast<int>(reported_), i);
  }
}

// Everybody learns everybody's report: all must draw the same conclusion from a warm-up.
SegmentReport Player::gather(const SegmentReport& mine) {
  const std::vector<std::string> all = control_.all_gather(mine.to_blob());
  if (host_ == 0) take_published();
  reports_.clear();
  if (all.empty()) reports_.push_back(mine);  // stopped: what this process knows is all there is
  for (std::size_t h = 0; h < all.size(); ++h) {
    std::optional<SegmentReport> report = SegmentReport::from_blob(all[h]);
    if (!report || report->rows.size() > rows().size()) {
      control_.fail(malformed(static_cast<int>(h), "report"));
      report.emplace();
    }
    report->host.index = static_cast<int>(h);
    reports_.push_back(*std::move(report));
  }
  SegmentReport sum;
  for (const SegmentReport& r : reports_) sum.merge(r);
  return sum;
}

}  // namespace ghostrank
