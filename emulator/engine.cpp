// Set-up, segments and the result; the loop itself is in shard.cpp.
#include "emulator/engine.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <map>
#include <sys/random.h>
#include <sys/resource.h>
#include <thread>

#include "emulator/blob.h"
#include "emulator/capacity.h"
#include "emulator/clock.h"
#include "emulator/fabric/local.h"
#include "emulator/fabric/ofi.h"
#include "emulator/host_facts.h"
#include "emulator/segment.h"
#include "emulator/traffic.h"
#include "emulator/verify.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::int64_t kStartDelayNs = 20'000'000;  // longer than a start signal travels
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr int kMostWarmupRetries = 3;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double busbw_factor(Func func, double n) {
  switch (func) {
    case Func::all_reduce:
      return 2 * (n - 1) / n;
    case Func::reduce_scatter:
    case Func::all_gather:
    case Func::all_to_all:
    case Func::gather:
    case Func::scatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

void refuse_what_cannot_run(const JobSpec& spec, const Workload& workload, int processes) {
  if (processes > 1 && spec.fabric.kind != FabricKind::ofi) {
    throw Error("fabric.kind: memory and virtual run in one process, here are " +
                std::to_string(processes) + " (WORLD_SIZE); start one, or set fabric.kind=ofi");
  }
  if (processes > spec.cluster.nodes) {
    throw Error("cluster.nodes: " + std::to_string(spec.cluster.nodes) +
                " emulated nodes cannot be spread over " + std::to_string(processes) +
                " processes (WORLD_SIZE); start at most one per node");
  }
  if (!spec.run.verify) return;
  if (spec.fabric.colocated == Colocated::model) {
    throw Error(
        "run.verify: fabric.colocated model moves no data that could be verified; use memory");
  }
  std::uint64_t largest = 0;
  for (const Role& role : workload.roles) {
    for (const Program& program : role.iterations) {
      for (const auto& stream : program.streams) {
        for (const Op& op : stream) {
          if (op.kind == Op::Kind::compute || op.kind == Op::Kind::record ||
              op.kind == Op::Kind::wait)
            continue;
          if (!verifiable(op.dtype)) {
            throw Error("run.verify: " + std::string(name_of(op.dtype)) +
                        " cannot be verified; use int32, float32 or bfloat16 gradients");
          }
          largest = std::max(largest, op.count * bytes_of(op.dtype));
        }
      }
    }
  }
  // The buffer of every rank here, and as much again in flight.
  const double need = 2.0 * static_cast<double>(largest) * workload.ranks / processes;
  const auto have = static_cast<double>(available_memory_bytes());
  if (have > 0 && need > 0.8 * have) {
    throw Error("run.verify: real data for every rank needs about " +
                std::to_string(static_cast<long>(need / 1e9)) + " GB here, available are " +
                std::to_string(static_cast<long>(have / 1e9)) +
                " GB; use a smaller model or fewer ranks, or turn verify off");
  }
}

class Run {
 public:
  Run(const LoadedJob& job, const Workload& workload, Control& control, const RunOptions& options,
      Observer& observer)
      : spec_(job.spec),
        job_(job),
        workload_(workload),
        control_(control),
        options_(options),
        observer_(observer),
        host_(control.world().rank),
        hosts_(control.world().size),
        cluster_(spec_, workload, hosts_),
        virtual_(spec_.fabric.kind == FabricKind::virtual_time) {}

  Result play() {
    const std::int64_t began = monotonic_ns();
    prepare();
    began_ns_ = monotonic_ns();
    if (host_ == 0) observer_.on_start(result_);
    int next = 0;
    if (spec_.run.warmup > 0) next = warm_up();
    const auto before = read_interfaces(host_);
    if (control_.stop() == Stop::none) measure(next);
    finish(before);
    result_.wall_seconds = static_cast<double>(monotonic_ns() - began) * 1e-9;
    return std::move(result_);
  }

 private:
  // ---- Set-up: agree on the job, connect, measure, choose the dilation
  // -------------------------------------

  void prepare() {
    const std::vector<std::string> hellos = agree();
    for (int s = 0; s < cluster_.shards(); ++s) open_fabric(s);
    connect(hellos.size());
    for (int s = 0; s < cluster_.shards(); ++s) {
      shards_.push_back(std::make_unique<Shard>(Shard::Setup{
          spec_, workload_, cluster_, host_, s, *fabrics_[static_cast<std::size_t>(s)], nonce_,
          options_.trace_ranks, options_.max_spans / static_cast<std::size_t>(cluster_.shards()),
          (options_.spill_path.empty() ? "ghostrank-pairs.csv" : options_.spill_path) +
              spill_suffix(s)}));
    }
    result_.ranks = workload_.ranks;
    result_.nics_per_node = spec_.cluster.nics_per_node;
    result_.config_json = job_.config_json;
    result_.samples_per_iteration = workload_.samples_per_iteration;
    result_.flops_per_iteration = workload_.flops_per_iteration;
    choose_dilation();
    note_limits();
  }

  std::string spill_suffix(int shard) const {
    return hosts_ * cluster_.shards() == 1
               ? ""
               : "." + std::to_string(host_ * cluster_.shards() + shard);
  }

  // All processes play the same job with the same build; process 0 draws the nonce.
  std::vector<std::string> agree() {
    if (host_ == 0 && getrandom(&nonce_, sizeof nonce_, 0) != sizeof nonce_) {
      throw Error("getrandom failed; the kernel's random source is needed for the run's nonce",
                  ErrorKind::environment);
    }
    BlobWriter hello;
    hello.put(nonce_);
    hello.put(job_.config_json);
    hello.put(host_name());
    std::vector<std::string> all = gathered(hello.bytes());
    std::string config0;
    for (std::size_t h = 0; h < all.size(); ++h) {
      BlobReader r(all[h]);
      std::uint64_t nonce = 0;
      HostReport host;
      std::string config;
      r.get(nonce), r.get(config), r.get(host.hostname);
      if (h == 0) {
        nonce_ = nonce;
        config0 = config;
      }
      if (config != config0) {
        throw Error("host " + std::to_string(h) + " (" + host.hostname +
                    ") plays another job than host 0; start all processes with the same job file "
                    "and flags");
      }
      host.index = static_cast<int>(h);
      host.provider = host.transport = virtual_ ? "virtual" : "memory";
      for (int s = 0; s < cluster_.shards(); ++s) {
        host.ranks += static_cast<int>(cluster_.ranks_of(host.index, s).size());
      }
      result_.hosts.push_back(host);
    }
    return all;
  }

  std::vector<std::string> gathered(std::string_view blob) {
    std::vector<std::string> all = control_.all_gather(blob);
    if (all.empty())
      throw Error("stopped before the start: " + control_.stop_reason(), ErrorKind::environment);
    return all;
  }

  void open_fabric(int shard) {
    if (hosts_ == 1) {
      fabrics_.push_back(make_local_fabric());
      return;
    }
    OfiOptions o;
    o.provider = spec_.fabric.provider;
    o.bind_address = !spec_.fabric.bind.empty()
                         ? spec_.fabric.bind
                         : local_address_towards(control_.world().master_address);
    o.nonce = nonce_;
    o.keep_payload = spec_.run.verify;
    try {
      auto fabric = OfiFabric::open(o);
      ofi_.push_back(fabric.get());
      fabrics_.push_back(std::move(fabric));
    } catch (const Error& e) {
      if (shard == 0) control_.fail("host " + std::to_string(host_) + ": " + e.what());
      throw;
    }
  }

  // Destinations are numbered host * shards + shard.
  void connect(std::size_t hosts) {
    if (hosts == 1) return;
    BlobWriter mine;
    mine.put(ofi_[0]->provider());
    mine.put(ofi_[0]->transport());
    for (const OfiFabric* fabric : ofi_) mine.put(fabric->address());
    std::vector<std::string> addresses;
    const std::vector<std::string> all = gathered(mine.bytes());
    for (std::size_t h = 0; h < all.size(); ++h) {
      BlobReader r(all[h]);
      r.get(result_.hosts[h].provider), r.get(result_.hosts[h].transport);
      if (result_.hosts[h].provider != result_.hosts[0].provider) {
        throw Error("host " + std::to_string(h) + " uses libfabric provider " +
                        result_.hosts[h].provider + ", host 0 uses " + result_.hosts[0].provider +
                        "; they do not speak to each other: name one with fabric.provider",
                    ErrorKind::environment);
      }
      for (int s = 0; s < cluster_.shards(); ++s) {
        std::string address;
        r.get(address);
        addresses.push_back(std::move(address));
      }
    }
    for (int s = 0; s < cluster_.shards(); ++s) {
      ofi_[static_cast<std::size_t>(s)]->connect(addresses, host_ * cluster_.shards() + s);
    }
  }

  void choose_dilation() {
    const TrafficPlan plan = plan_traffic(spec_, workload_);
    if (virtual_) {
      result_.capacity.step_seconds_at_least = plan.step_seconds_at_least;
      return;
    }
    const bool probe = hosts_ > 1 && spec_.run.probe_ms > 0;
    if (hosts_ > 1 && !probe && spec_.dilation == 0) {
      throw Error("scale.dilation: auto needs run.probe_ms > 0, or give a number");
    }
    const double wire =
        probe ? measure_wire(control_, *fabrics_[0], nonce_, cluster_.shards(), spec_.run.probe_ms)
              : 0;
    BlobWriter mine;
    mine.put(measure_engine());
    double slowest = 0;
    for (const std::string& blob : gathered(mine.bytes())) {
      double theirs = 0;
      BlobReader(blob).get(theirs);
      slowest = std::max(slowest, theirs);
    }
    result_.capacity = needs_of(spec_, plan, hosts_, wire, slowest);
    result_.dilation = spec_.dilation > 0 ? spec_.dilation : result_.capacity.dilation_needed;
  }

  void note_limits() {
    if (spec_.fabric.kind == FabricKind::ofi) {
      if (hosts_ == 1) {
        result_.notes.push_back(
            "one process: nothing crossed the fabric; start several (WORLD_SIZE) to use it");
      } else {
        result_.notes.push_back(
            "cluster.nic.latency_us is recorded, not injected, between hosts: the real fabric has "
            "its own");
      }
    }
    if (spec_.collectives.library == "generic") {
      result_.notes.push_back("library generic: textbook schedules, not those of a named library");
    }
  }

  // ---- Segments
  // --------------------------------------------------------------------------------------------

  // Plays the warm-up, again at a larger dilation while `auto` finds it unfaithful. Returns the
  // next iteration.
  int warm_up() {
    int next = 0;
    for (int attempt = 0;; ++attempt) {
      const SegmentReport sum = segment(next, spec_.run.warmup, true);
      next += spec_.run.warmup;
      if (control_.stop() != Stop::none || virtual_ || spec_.dilation > 0 ||
          attempt == kMostWarmupRetries)
        return next;
      const double step = seconds(sum.end.at) / spec_.run.warmup;
      const Fidelity f = judge(sum, spec_, result_.dilation, step);
      if (f.faithful) return next;
      const double factor =
          std::clamp(std::max({f.critical_lateness / 0.008, f.loop_busy / 0.7, 1.25}), 1.25, 4.0);
      const double raised = std::ceil(result_.dilation * factor);
      if (host_ == 0) observer_.on_dilation(result_.dilation, raised, f.reason);
      result_.dilation = raised;
    }
  }

  void measure(int first) {
    const std::int64_t began = monotonic_ns();
    const SegmentReport sum = segment(first, spec_.run.iterations, false);
    result_.played_wall_seconds = static_cast<double>(monotonic_ns() - began) * 1e-9;
    std::vector<double> steps;
    for (const IterationReport& i : result_.iterations) steps.push_back(i.seconds);
    result_.fidelity = judge(sum, spec_, result_.dilation, median(steps));
    if (host_ == 0) report(sum);
  }

  SegmentReport segment(int first, int count, bool warmup) {
    warmup_ = warmup;
    segment_first_ = static_cast<std::uint32_t>(first);
    segment_count_ = static_cast<std::uint32_t>(count);
    open_parts_.clear();
    whole_parts_.clear();
    reported_ = 0;
    previous_end_ = {};
    const double cpu = cpu_seconds();
    const Clock clock = start_clock();
    ShardShared shared(cluster_.shards());
    for (auto& f : fabrics_) shared.fabrics.push_back(f.get());
    if (control_.stop() == Stop::none) play_shards(first, count, clock, shared);

    SegmentReport mine;
    mine.host = result_.hosts[static_cast<std::size_t>(host_)];
    for (std::size_t s = 0; s < shards_.size(); ++s) {
      mine.add(*shards_[s], shards_[s]->take_spans());
      mine.strays += fabrics_[s]->stats().strays;
    }
    mine.host.rss_bytes = resident_bytes();
    mine.host.cpu_seconds = cpu_seconds() - cpu;
    mine.interfaces = std::move(interfaces_);
    return gather(mine);
  }

  // Emulated time zero, the same instant on every host.
  Clock start_clock() {
    if (virtual_) return Clock::virtual_time();
    BlobWriter mine;
    mine.put(monotonic_ns() + kStartDelayNs);
    std::int64_t zero = monotonic_ns();
    const std::vector<std::string> all = control_.all_gather(mine.bytes());
    if (!all.empty()) BlobReader(all[0]).get(zero);
    return Clock::real(zero + control_.clock_offset_ns(), result_.dilation);
  }

  void play_shards(int first, int count, const Clock& clock, ShardShared& shared) {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t running = shards_.size();
    std::vector<std::thread> threads;
    for (auto& shard : shards_) {
      threads.emplace_back([&, s = shard.get()] {
        s->play(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count), clock,
                result_.dilation, shared);
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
  void look(ShardShared& shared) {
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
    std::uint32_t local_ranks = 0;
    for (int s = 0; s < cluster_.shards(); ++s)
      local_ranks += static_cast<std::uint32_t>(cluster_.ranks_of(host_, s).size());
    for (const IterationPart& part : parts) {
      IterationPart& sum = open_parts_[part.iteration];
      sum.iteration = part.iteration;
      sum.merge(part);
      if (sum.ranks < local_ranks) continue;
      BlobWriter w;
      w.put(sum);
      control_.publish(w.bytes());
    }
    if (host_ == 0) take_published();
    if (host_ == 0) report_progress(shared.steps.load(std::memory_order_relaxed), local_ranks);
  }

  void take_published() {
    for (const auto& [host, blob] : control_.take_published()) {
      IterationPart part;
      BlobReader r(blob);
      r.get(part);
      if (r.bad()) continue;
      IterationPart& sum = whole_parts_[part.iteration];
      sum.iteration = part.iteration;
      sum.merge(part);
    }
    // In order: an iteration is over when every rank of the job has ended it.
    for (; reported_ < segment_count_; ++reported_) {
      const auto found = whole_parts_.find(segment_first_ + reported_);
      if (found == whole_parts_.end() ||
          found->second.ranks < static_cast<std::uint32_t>(workload_.ranks))
        return;
      const IterationPart& part = found->second;
      const double ranks = workload_.ranks;
      IterationReport i;
      i.seconds = seconds(part.end.at - previous_end_.at);
      i.compute_seconds = seconds(part.compute) / ranks;
      i.exposed_comm_seconds = seconds(part.exposed) / ranks;
      i.bubble_seconds = seconds(part.bubble) / ranks;
      previous_end_ = part.end;
      if (!warmup_) result_.iterations.push_back(i);
      const auto index = static_cast<int>(reported_);
      observer_.on_iteration(warmup_ ? index - static_cast<int>(segment_count_) : index, i);
    }
  }

  void report_progress(std::uint64_t rank_iterations, std::uint32_t local_ranks) {
    const double in_segment =
        static_cast<double>(rank_iterations) / std::max<std::uint32_t>(1, local_ranks);
    const double all = spec_.run.warmup + spec_.run.iterations;
    const double before = warmup_ ? 0 : spec_.run.warmup;
    observer_.on_progress(std::min(1.0, (before + in_segment) / all),
                          static_cast<double>(monotonic_ns() - began_ns_) * 1e-9);
  }

  // Everybody learns everybody's report: all must draw the same conclusion from a warm-up.
  SegmentReport gather(const SegmentReport& mine) {
    const std::vector<std::string> all = control_.all_gather(mine.to_blob());
    if (host_ == 0) take_published();
    SegmentReport sum;
    if (all.empty()) {  // stopped: what this process knows is all there is
      sum.merge(mine);
      reports_ = {mine};
      return sum;
    }
    reports_.clear();
    for (const std::string& blob : all) {
      reports_.push_back(SegmentReport::from_blob(blob));
      sum.merge(reports_.back());
    }
    return sum;
  }

  // ---- Result
  // ------------------------------------------------------------------------------------------------

  void report(const SegmentReport& sum) {
    for (const SegmentReport& r : reports_)
      result_.hosts[static_cast<std::size_t>(r.host.index)] = r.host;
    // A stopped run's ledger holds part of an unfinished iteration: averaging it would be wrong.
    const double iterations = std::max<double>(1, static_cast<double>(result_.iterations.size()));
    if (static_cast<int>(result_.iterations.size()) < spec_.run.iterations) {
      result_.notes.push_back("stopped early: traffic counts the unfinished iteration too");
    }
    report_traffic(sum, iterations);
    for (std::size_t i = 0; i < sum.rows.size(); ++i)
      report_row(shards_[0]->rows()[i], sum.rows[i], iterations);
    if (spec_.run.verify) result_.verify = VerifyReport{sum.checked, sum.wrong};
    result_.spans = sum.spans;
    result_.spans_dropped = sum.spans_dropped;
    if (sum.strays > 0)
      result_.notes.push_back(std::to_string(sum.strays) + " stray messages were dropped");
  }

  void report_traffic(const SegmentReport& sum, double iterations) {
    std::map<std::pair<int, int>, LedgerCell> pairs;
    for (const LedgerRow& row : sum.ledger) {
      LedgerCell& cell = pairs[{row.key.source_nic, row.key.target_nic}];
      cell.bytes += row.count.bytes;
      cell.messages += row.count.messages;
    }
    for (const auto& [pair, cell] : pairs) {
      const double bytes = static_cast<double>(cell.bytes) / iterations;
      const double messages = static_cast<double>(cell.messages) / iterations;
      result_.pairs.push_back({pair.first, pair.second, bytes, messages});
      result_.wire_bytes_per_iteration += bytes;
      result_.messages_per_iteration += messages;
    }
    result_.intra_node_bytes_per_iteration = static_cast<double>(sum.intra.bytes) / iterations;
    result_.intra_node_messages_per_iteration =
        static_cast<double>(sum.intra.messages) / iterations;
    if (!sum.spill_path.empty()) {
      result_.pairs_file = sum.spill_path;
      result_.notes.push_back(
          "the ledger outgrew memory: pairs here are the rest, earlier partial sums are in " +
          sum.spill_path + "*");
    }
  }

  void report_row(const Schedules::Row& row, const RowStats& stats, double iterations) {
    if (stats.calls == 0) return;
    double members = 1;
    for (const Group& g : workload_.groups) {
      if (g.kind == row.kind) members = std::max(members, static_cast<double>(g.members.size()));
    }
    CollectiveReport c;
    c.op = row.op;
    c.group = row.group;
    c.algorithm = row.algorithm;
    c.calls = static_cast<double>(stats.calls) / iterations;
    c.bytes = static_cast<double>(stats.bytes) / iterations;
    c.seconds_median = median({stats.seconds.begin(), stats.seconds.end()});
    if (stats.total_seconds > 0)
      c.algbw_GBps = static_cast<double>(stats.bytes) / stats.total_seconds * 1e-9;
    c.busbw_GBps = c.algbw_GBps * busbw_factor(row.func, members);
    result_.collectives.push_back(std::move(c));
  }

  void finish(const std::vector<InterfaceReport>& before) {
    const auto moved = difference(before, read_interfaces(host_));
    SegmentReport facts;
    facts.interfaces = moved;
    for (const std::string& blob : control_.all_gather(facts.to_blob())) {
      const SegmentReport theirs = SegmentReport::from_blob(blob);
      result_.interfaces.insert(result_.interfaces.end(), theirs.interfaces.begin(),
                                theirs.interfaces.end());
    }
    if (control_.stop() != Stop::none) {
      result_.interrupted = control_.stop_reason();
      if (result_.interrupted.empty()) result_.interrupted = "stopped";
      result_.fidelity.faithful = false;
      result_.fidelity.reason = result_.interrupted;
    }
  }

  const JobSpec& spec_;
  const LoadedJob& job_;
  const Workload& workload_;
  Control& control_;
  const RunOptions& options_;
  Observer& observer_;
  const int host_, hosts_;
  const Cluster cluster_;
  const bool virtual_;
  std::uint64_t nonce_ = 0;
  std::vector<std::unique_ptr<Fabric>> fabrics_;  // by shard
  std::vector<OfiFabric*> ofi_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<InterfaceReport> interfaces_;
  Result result_;
  std::int64_t began_ns_ = 0;

  // Of the current segment.
  bool warmup_ = false;
  std::uint32_t segment_first_ = 0, segment_count_ = 0, reported_ = 0;
  std::map<std::uint32_t, IterationPart> open_parts_;   // of this process
  std::map<std::uint32_t, IterationPart> whole_parts_;  // of the job, on process 0
  Moment previous_end_;
  std::vector<SegmentReport> reports_;  // by host
};

}  // namespace

Result run_job(const LoadedJob& job, const Workload& workload, Control& control,
               const RunOptions& options, Observer& observer) {
  refuse_what_cannot_run(job.spec, workload, control.world().size);
  return Run(job, workload, control, options, observer).play();
}

}  // namespace ghostrank
