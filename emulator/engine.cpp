// A session from end to end: refuse, assemble; then, phase by phase, warm up, measure, report. The
// event loop is in shard/shard.cpp.
#include "emulator/engine.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <malloc.h>
#include <optional>
#include <set>

#include "emulator/adapt/adaptive_ratios.h"
#include "emulator/assemble/capacity.h"
#include "emulator/assemble/core_setup.h"
#include "emulator/assemble/ensemble.h"
#include "emulator/assemble/send_limit.h"
#include "emulator/common/clock.h"
#include "emulator/common/log.h"
#include "emulator/host/host_facts.h"
#include "emulator/host/hosts.h"
#include "emulator/host/huge_pages.h"
#include "emulator/limits.h"
#include "emulator/open_ended.h"
#include "emulator/player.h"
#include "emulator/process_checks.h"
#include "emulator/reporting.h"
#include "emulator/result/events_played.h"
#include "emulator/result/network_report.h"
#include "emulator/several_jobs.h"
#include "emulator/slice/outside.h"
#include "emulator/traffic/schedules.h"
#include "emulator/traffic/tensor_use.h"
#include "emulator/traffic/traffic.h"
#include "emulator/verify/gradient_states.h"
#include "emulator/verify/verify.h"
#include "emulator/warmup.h"
#include "profiles/device/device.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/job/events.h"
#include "profiles/load/load.h"

namespace ghostrank {

class Session::Play {
 public:
  Play(const LoadedJob& job, const Workload& workload, Control& control, const RunOptions& options,
       Observer& observer)
      : spec_(job.spec),
        config_json_(job.config_json),
        workload_(workload),
        control_(control),
        options_(options),
        observer_(observer),
        host_(control.world().host()),
        began_ns_(monotonic_ns()),
        cluster_(spec_, workload, control.world().size),
        flows_(spec_, workload, cluster_),
        cores_(settle_cores(spec_, cluster_.shards(), control)),
        stay_on_(cores_.usable),
        ensemble_(assemble(
            job, cluster_, flows_, control, options.network_switch,
            cores_.plan.of_thread.empty() ? cores_.usable : cores_.plan.of_thread.front())),
        wired_(!flows_.flows().empty() || !ensemble_.switch_packets.empty()),
        states_(spec_.run.verify && carries_gradients(spec_)
                    ? std::make_unique<GradientStates>(spec_, workload)
                    : nullptr),
        outside_(cluster_.is_slice() ? std::make_unique<Outside>(spec_, workload, cluster_)
                                     : nullptr),
        player_(spec_, workload, cluster_, ensemble_, control, make_shards()) {
    player_.play_beside(outside_.get());
    for (HostReport& host : ensemble_.hosts) {
      if (const HostEntry* entry = host_entry(spec_, host.index, cluster_.hosts()))
        host.name = entry->name;
    }
    HostReport& here = ensemble_.hosts[host_.index()];
    describe_cores(cores_, here);
    here.cpu = cpu_model();
    here.kernel = kernel_version();
    log_info("engine threads (", cluster_.shards(), ") use cores ", here.cores,
             here.bound ? ", bound" : ", not bound", here.cores_note.empty() ? "" : ": ",
             here.cores_note);
    log_info("assembled in ", seconds_since(began_ns_), " s: ", here.ranks, " of ", workload.ranks,
             " ranks are here");
  }

  Result play(const Phase& phase) {
    phase_ = phase;
    player_.choose_with(phase.chooser);
    if (!workload_.jobs.empty()) next_ = 0;  // alone and together they play the same iterations
    result_ = {};
    result_.config_json = config_json_;
    result_.hosts = ensemble_.hosts;
    result_.ranks = workload_.ranks - workload_.servers;
    result_.nics_per_node = spec_.cluster.nics_per_node;
    result_.flows = flows_.per_host_pair();
    if (outside_) {
      std::vector<int> nodes;
      for (const Node node : spec_.slice) nodes.push_back(node.value());
      result_.slice = {number_list_text(nodes), static_cast<int>(nodes.size()), spec_.cluster.nodes,
                       cluster_.ranks_played()};
    }
    result_.samples_per_iteration = workload_.samples_per_iteration;
    result_.flops_per_iteration = workload_.flops_per_iteration;
    result_.peak_flops = matmul_peak_tflops(spec_.device, spec_.precision) * 1e12;
    result_.capacity = needs();
    result_.dilation = virtual_             ? 1
                       : spec_.dilation > 0 ? spec_.dilation
                                            : result_.capacity.dilation_needed;
    result_.iterations_asked = phase_.end.is_open() ? 0 : phase_.iterations;
    result_.deterministic = is_deterministic(spec_, workload_, cluster_);
    step_seconds_ = result_.capacity.step_seconds_at_least;
    looks_.clear();
    hopeless_ = false;
    look_ = iterations_to_see_all(next_ + static_cast<std::uint32_t>(phase_.warmup));
    // Give the memory that planning freed back to the kernel: the engine threads allocate from
    // arenas of their own.
    malloc_trim(0);
    for (std::string& note : limits_of(spec_, workload_, cluster_, wired_, !flows_.flows().empty()))
      result_.notes.push_back(std::move(note));
    log_info("dilation ", result_.dilation, " at first, needed are ",
             result_.capacity.dilation_needed);
    if (host_ == Host(0)) observer_.on_start(result_);
    played_from_ns_ = monotonic_ns();
    std::optional<HugePages> huge_pages;
    // What flows touch is less, and gains nothing.
    if (virtual_ && spec_.fabric.network != NetworkModel::flow) huge_pages.emplace();
    if (phase_.warmup > 0 && control_.stop() == Stop::none) warm_up();
    if (control_.stop() == Stop::none) measure();
    if (control_.stop() != Stop::none) note_stop();
    result_.wall_seconds = seconds_since(began_ns_);
    began_ns_ = monotonic_ns();
    return std::move(result_);
  }

 private:
  static double seconds_since(std::int64_t ns) {
    return static_cast<double>(monotonic_ns() - ns) * 1e-9;
  }

  std::vector<std::unique_ptr<Shard>> make_shards() {
    std::vector<std::unique_ptr<Shard>> shards;
    const int count = cluster_.shards();
    const bool alone = cluster_.hosts() * count == 1;
    for (int s = 0; s < count; ++s) {
      std::string spill = options_.spill_path.empty() ? "ghostrank-pairs.csv" : options_.spill_path;
      if (!alone) spill += "." + std::to_string(host_.value() * count + s);
      shards.push_back(std::make_unique<Shard>(Shard::Setup{
          spec_, workload_, cluster_, host_, s, flows_, *ensemble_.fabrics[s], ensemble_.nonce,
          options_.trace_ranks, options_.max_spans / static_cast<std::size_t>(count), spill,
          cores_.plan.of_thread.empty() ? std::vector<int>{} : cores_.plan.of_thread[s],
          ensemble_.packets.empty() ? nullptr : ensemble_.packets[s].get(),
          ensemble_.switch_packets.empty() ? nullptr : ensemble_.switch_packets[s].get(),
          states_.get(), options_.link_times}));
    }
    return shards;
  }

  // What this phase needs of the machine. A virtual run needs nothing, so a single-program phase of
  // it skips the traffic walk; a whole job still gets its lower bound of the step time.
  Capacity needs() const {
    if (virtual_ && phase_.program != kInOrder) return {};
    const TrafficPlan plan = phase_.program == kInOrder
                                 ? plan_traffic(spec_, workload_)  // the steady state
                                 : plan_traffic(spec_, workload_, phase_.program);
    if (virtual_) {
      Capacity c;
      c.step_seconds_at_least = plan.step_seconds_at_least;
      return c;
    }
    const int threads = std::min(cluster_.shards(), usable_cores());
    Capacity c = needs_of(spec_, plan, cluster_.hosts(), threads, ensemble_.wire_bytes_per_second,
                          ensemble_.seconds_per_message, phase_.iterations);
    c.cap_dilation = dilation_of_cap(spec_, plan, cluster_.hosts(), ensemble_.stream_bps);
    check_cap(spec_, c.cap_dilation);
    c.wire_dilation = std::max(c.wire_dilation, c.cap_dilation);
    c.dilation_needed = std::max(c.dilation_needed, c.cap_dilation);
    return c;
  }

  void note_cores() {
    for (const HostReport& host : result_.hosts) {
      if (!host.cores_note.empty())
        result_.notes.push_back("host " + to_string(host.index) +
                                ": engine threads are not bound to cores, " + host.cores_note);
    }
  }

  Segment next_segment(int iterations) {
    Segment segment;
    segment.first = next_;
    segment.count = static_cast<std::uint32_t>(iterations);
    segment.program = phase_.program;
    segment.job = phase_.job;
    segment.dilation = result_.dilation;
    segment.verify = phase_.verify;
    next_ += segment.count;
    if (states_ && segment.verify) states_->begin_segment(segment.first);
    return segment;
  }

  RunWindow window() const {
    const bool keep = spec_.dilation > 0;
    return {phase_.warmup,
            phase_.iterations,
            virtual_ ? 0 : std::max(phase_.min_seconds, phase_.end.duration),
            result_.capacity.wire_dilation,
            keep,
            wired_,
            look_};
  }

  std::set<std::size_t> programs_of(std::uint32_t first, int count) const {
    std::set<std::size_t> programs;
    const auto last = static_cast<std::size_t>(distinct_iterations(workload_)) - 1;
    for (int i = 0; i < count; ++i)
      programs.insert(
          std::min(program_number(workload_, first + static_cast<std::uint32_t>(i)), last));
    return programs;
  }

  // Iterations from `first` on that a warm-up must play to have played every program that is
  // measured. DDP's first iterations, for example, have less overlap than the later ones, so a
  // warm-up of them alone says nothing about the others.
  int iterations_to_see_all(std::uint32_t first) const {
    constexpr int kMost = 4;
    if (phase_.program != kInOrder) return 1;
    const int all = std::clamp(phase_.iterations, 1, kMost);
    for (int count = 1; count < all; ++count)
      if (programs_of(first, count) == programs_of(first, all)) return count;
    return all;
  }

  // Plays the warm-up, then further ones while they can teach something. Further warm-ups play the
  // iteration numbers that are measured later, so their number changes neither what is measured nor
  // its jitter, which equals that of a run in virtual time.
  void warm_up() {
    const std::uint32_t measured_from = next_ + static_cast<std::uint32_t>(phase_.warmup);
    const std::set<std::size_t> measured = programs_of(measured_from, look_);
    std::set<std::size_t> seen;
    for (int count = phase_.warmup; count > 0;) {
      seen.merge(programs_of(next_, count));
      if (!look(count, measured_from)) return;
      NextPlay next = after_warm_ups(looks_, window());
      const bool saw_all =
          phase_.program != kInOrder ||
          std::includes(seen.begin(), seen.end(), measured.begin(), measured.end());
      if (!saw_all && spec_.dilation == 0)
        next = {true, std::max(next.dilation, result_.dilation), std::max(next.iterations, look_),
                next.dilation > result_.dilation ? next.reason : ""};
      count = follow(next);
    }
  }

  // Plays `count` iterations that are not measured, and remembers how they went. `then`: number
  // of the iteration that follows. Returns whether they teach anything.
  bool look(int count, std::uint32_t then) {
    const SegmentReport sum = player_.play(next_segment(count), callbacks(count, false));
    next_ = then;
    note_warmup_stalls();
    if (virtual_ || control_.stop() != Stop::none) return false;
    step_seconds_ = seconds(sum.end.at) / count;
    looks_.push_back(
        {result_.dilation, count, step_seconds_, judge(sum, spec_, result_.dilation, wired_)});
    log_warm_up(looks_.back());
    return true;
  }

  // Takes the dilation that `next` says. Returns how many iterations to play as a warm-up; 0: none.
  int follow(const NextPlay& next) {
    hopeless_ = next.hopeless;
    if (host_ == Host(0) && (next.dilation != result_.dilation || next.hopeless))
      observer_.on_dilation(result_.dilation, next.dilation,
                            next.hopeless ? "no dilation was faithful here, and the run will not "
                                            "be: " +
                                                next.reason
                                          : next.reason);
    if (next.dilation != result_.dilation)
      log_info("dilation ", result_.dilation, " becomes ", next.dilation,
               next.reason.empty() ? "" : ": ", next.reason);
    result_.dilation = next.dilation;
    return next.again ? next.iterations : 0;
  }

  static void log_warm_up(const WarmUp& w) {
    log_info("warm-up of ", w.iterations, " iterations at dilation ", w.dilation, ": step ",
             w.step_seconds, " s, loop busy ", w.fidelity.loop_busy, ", ",
             w.fidelity.faithful ? "faithful" : "not faithful: ", w.fidelity.reason);
  }

  // Notes the stalls of a warm-up, because the result lists only those of measured iterations.
  void note_warmup_stalls() {
    for (const StallReport& s : player_.stalls()) result_.notes.push_back(warm_up_stall(s));
  }

  // Plays the measured iterations. Where `auto` chose their dilation and they were not faithful,
  // they count as one more warm-up, and are played again.
  void measure() {
    const std::uint32_t first = next_;
    std::optional<Result> kept;  // what was measured last, where it is measured again
    for (int times = 1;; ++times) {
      Segment segment = next_segment_to_measure();
      const double switch_before = switch_processor_seconds();
      const std::int64_t began = monotonic_ns();
      iterations_.assign(jobs_of(workload_), {});
      SegmentReport sum = phase_.end.is_open()
                              ? play_open_end(segment, began)
                              : player_.play(segment, callbacks(result_.iterations_asked, true));
      result_.played_wall_seconds = seconds_since(began);
      result_.fidelity = judge(sum, spec_, result_.dilation, wired_);
      const bool again = is_measured_again(segment, sum, times);
      // The next plays write to the same files.
      if (again && sum.spilled > 0) sum.in_files = Spilled::some;
      const Result before = result_;
      note_switch(switch_before);
      report(segment, sum);
      if (!again) {
        if (kept && kept->iterations.size() > result_.iterations.size()) take_kept(*kept);
        return;
      }
      kept = std::exchange(result_, before);
      learn_from_measured(segment, sum);
      next_ = first;
      while (const int count = follow(after_warm_ups(looks_, window())))
        if (!look(count, first)) return take_kept(*kept);
    }
  }

  // The run was stopped while it measured again.
  void take_kept(Result& kept) {
    kept.notes.push_back(
        "stopped while it was measured again: these iterations were not faithful, " +
        kept.fidelity.reason);
    result_ = std::move(kept);
  }

  Segment next_segment_to_measure() {
    const double step = virtual_ ? 0 : step_seconds_ * result_.dilation;
    const int count = phase_.end.is_open() ? 0 : iterations_to_measure(window(), step);
    result_.iterations_asked = count;
    Segment segment = next_segment(count);
    segment.measured = true;
    segment.measured_from = segment.first;
    segment.counts = phase_.of_job;
    for (const std::uint32_t of_job : segment.counts)
      segment.count = std::max(segment.count, of_job);
    return segment;
  }

  // Plays iterations until the job's end is reached. Sets the segment's count.
  SegmentReport play_open_end(Segment& segment, std::int64_t began_ns) {
    open_ended_.emplace(phase_.end, phase_.iterations, virtual_, result_.deterministic,
                        virtual_ ? 0 : step_seconds_ * result_.dilation);
    SegmentReport sum = open_ended_->play(player_, control_, segment, began_ns, callbacks(0, true));
    next_ = segment.first + segment.count;
    return sum;
  }

  // Iterations that found wrong sums or stalls are the result, and are not measured again.
  bool is_measured_again(const Segment& segment, const SegmentReport& sum, int times) const {
    if (virtual_ || hopeless_ || control_.stop() != Stop::none) return false;
    return measure_again(as_warm_up(segment, sum), times, window()) && sum.wrong == 0 &&
           sum.stalls == 0;
  }

  WarmUp as_warm_up(const Segment& segment, const SegmentReport& sum) const {
    const auto count = static_cast<int>(segment.count);
    return {result_.dilation, count, seconds(sum.end.at) / count, result_.fidelity};
  }

  // Remembers measured iterations as a warm-up.
  void learn_from_measured(const Segment& segment, const SegmentReport& sum) {
    looks_.push_back(as_warm_up(segment, sum));
    std::array<char, 32> dilation{};
    std::snprintf(dilation.data(), dilation.size(), "%g", result_.dilation);
    result_.notes.push_back("measured again, because at dilation " + std::string(dilation.data()) +
                            " it was not faithful: " + result_.fidelity.reason);
    log_info(result_.notes.back());
  }

  void report(const Segment& segment, const SegmentReport& sum) {
    if (open_ended_) {
      iterations_.front() = open_ended_->iterations();
      open_ended_->report(host_ == Host(0), result_);
      open_ended_.reset();
    }
    const std::vector<double> played_by_job = take_iterations(segment);
    result_.stalls = player_.stalls();
    if (host_ == Host(0))
      report_segment(segment, workload_, player_.rows(), sum, player_.reports(), played_by_job,
                     result_);
    if (workload_.jobs.empty()) {
      result_.tensors = tensor_use(spec_, workload_, segment.first);
      if (!phase_.chooser)
        result_.compression = compression_use(spec_, workload_, segment.first, 0,
                                              static_cast<std::uint32_t>(played_by_job[0]));
    }
    if (states_) result_.training = states_->training();
    if (!cluster_.schemes().empty()) result_.packets = sum.packets;
    report_troubles(sum, spec_.network_switch, result_);
    if (spec_.events)
      report_events(*spec_.events, sum.until, !virtual_, player_.missing(), result_);
    report_servers(sum, cluster_, workload_, played_by_job, spec_.cluster.servers.cores, result_);
    const double played = played_by_job[first_job()];
    const double lasted = seconds(sum.until);
    if (spec_.fabric.network == NetworkModel::packet && !sum.links.empty())
      result_.network = packet_report(cluster_.topology(), sum.links, played, lasted);
    else
      result_.network = network_report(cluster_.topology(), sum.links, played, lasted);
    if (!result_.network && spec_.fabric.kind == FabricKind::virtual_time)
      result_.network = NetworkReport{.topology = "one switch", .routing = "one path"};
    result_.link_history = link_history(cluster_.topology(), sum.link_times, lasted);
    if (result_.network && spec_.fabric.network == NetworkModel::flow)
      describe_flows(sum.fluids, *result_.network);
    note_cores();
    note_missing();
    log_info("measured ", iterations_played(result_), " of ", result_.iterations_asked,
             " iterations (0: an open end) in ", result_.played_wall_seconds, " s",
             result_.fidelity.reason.empty() ? "" : "; not faithful: ", result_.fidelity.reason);
  }

  // What only part of the processes counted is not the job's.
  void note_missing() {
    if (player_.missing().empty()) return;
    std::vector<int> here;
    for (const HostReport& host : result_.hosts)
      if (player_.missing().count(host.index) == 0) here.push_back(host.index.value());
    result_.notes.push_back(
        "the other processes' reports did not come: traffic, calls, interfaces and verification "
        "are those of " +
        std::string(here.size() == 1 ? "host " : "hosts ") + number_list_text(here) + " alone");
    result_.fidelity.valid_for.clear();
  }

  std::size_t first_job() const {
    return phase_.job == kEveryJob ? 0 : static_cast<std::size_t>(phase_.job);
  }

  // Moves the iterations of every job to the result. Returns how many each played, at least 1.
  std::vector<double> take_iterations(const Segment& segment) {
    std::vector<double> played;
    for (const auto& of_job : iterations_)
      played.push_back(static_cast<double>(std::max<std::size_t>(1, of_job.size())));
    if (result_.open_end)
      played.front() =
          static_cast<double>(std::max<std::uint64_t>(1, result_.open_end->iterations));
    result_.iterations = iterations_[first_job()];
    for (std::size_t job = 0; job < workload_.jobs.size(); ++job) {
      const WorkloadJob& own = workload_.jobs[job];
      std::set<int> nodes;
      for (int r = 0; r < own.ranks; ++r)
        nodes.insert(cluster_.location(own.first + r).node.value());
      result_.jobs.push_back({own.name,
                              number_list_text({nodes.begin(), nodes.end()}),
                              own.ranks,
                              std::move(iterations_[job]),
                              {},
                              0,
                              0,
                              own.samples_per_iteration,
                              own.flops_per_iteration,
                              tensor_use(spec_, workload_, segment.first, job),
                              compression_use(spec_, workload_, segment.first, job,
                                              static_cast<std::uint32_t>(played[job]))});
    }
    return played;
  }

  // Negative: unknown.
  double switch_processor_seconds() const {
    return options_.network_switch ? options_.network_switch->processor_seconds() : -1;
  }
  void note_switch(double seconds_before) {
    const SwitchSpec& sw = spec_.network_switch;
    if (!sw.outside()) return;
    result_.network_switch.emplace(SwitchReport{std::string(name_of(sw.target)), sw.address, {}});
    if (options_.network_switch)
      result_.network_switch->memory_bytes = options_.network_switch->memory_bytes();
    const double now = switch_processor_seconds();
    if (now >= 0 && seconds_before >= 0)
      result_.network_switch->processor_seconds = now - seconds_before;
  }

  // Callbacks for `count` iterations; tells the observer that they begin.
  Player::Callbacks callbacks(int count, bool measured) {
    if (host_ == Host(0)) observer_.on_play(count, measured);
    // Progress is in wall seconds. In virtual time a step's wall time is unknown, so it counts
    // iterations.
    const double each = virtual_ ? 1 : std::max(step_seconds_ * result_.dilation, 1e-9);
    const double before = !virtual_ ? seconds_since(played_from_ns_) : measured ? phase_.warmup : 0;
    const double after = measured   ? 0
                         : virtual_ ? phase_.iterations
                                    : each * iterations_to_measure(window(), each);
    const double all = before + each * count + after;
    const bool open = measured && open_ended_;
    const std::int64_t began = monotonic_ns();
    return {
        [this, count, measured, open](std::size_t job, int index, const IterationReport& report) {
          if (open)
            note_iteration(report);
          else if (measured)
            iterations_[job].push_back(report);
          if (job != first_job()) return;
          log_debug(measured ? "iteration " : "warm-up iteration ", index, ": ", report.seconds,
                    " s");
          observer_.on_iteration(measured ? index : index - count, report);
        },
        [this, all, before, each, open, began](double iterations) {
          const double share = open ? open_ended_->fraction(iterations, seconds_since(began))
                                    : (before + each * iterations) / all;
          observer_.on_progress(std::min(1.0, share), seconds_since(played_from_ns_));
        }};
  }

  // Of a run with an open end.
  void note_iteration(const IterationReport& report) {
    open_ended_->iteration_ended(report);
    if (const std::optional<double> half = open_ended_->half_width()) observer_.on_precision(*half);
  }

  void note_stop() {
    result_.interrupted = control_.stop_reason();
    log_warn("the run stops: ", result_.interrupted);
    if (result_.interrupted.empty()) result_.interrupted = "stopped";
    result_.fidelity.faithful = false;
    result_.fidelity.reason = result_.interrupted;
  }

  const JobSpec& spec_;
  const std::string& config_json_;
  const Workload& workload_;
  Control& control_;
  const RunOptions options_;  // a copy: the caller's may be a temporary
  Observer& observer_;
  const Host host_;
  const bool virtual_ = spec_.fabric.kind == FabricKind::virtual_time;
  std::int64_t began_ns_;  // start of set-up and the first phase, then of each phase
  std::int64_t played_from_ns_ = 0;
  const Cluster cluster_;
  const Flows flows_;
  const ProcessCores cores_;
  const StayOn stay_on_;  // bound before the fabric starts its own threads, which inherit the CPUs
  Ensemble ensemble_;
  const bool wired_;                              // messages cross a real network
  const std::unique_ptr<GradientStates> states_;  // null: ranks carry nothing from step to step
  const std::unique_ptr<Outside> outside_;        // of a slice; else null
  Player player_;
  std::uint32_t next_ = 0;  // next iteration number

  Phase phase_;                          // being played
  double step_seconds_ = 0;              // of this phase, emulated, best estimate so far
  int look_ = 1;                         // RunWindow::look of this phase
  std::vector<WarmUp> looks_;            // plays of this phase that were not taken as its result
  bool hopeless_ = false;                // no dilation was faithful
  std::optional<OpenEnded> open_ended_;  // while iterations with an open end are measured
  Result result_;                        // of this phase
  std::vector<std::vector<IterationReport>> iterations_;  // of its measured segment, by job
};

Session::Session(const LoadedJob& job, const Workload& workload, Control& control,
                 const RunOptions& options, Observer& observer) {
  check_processes(job.spec, workload, control.world().size);
  check_schedules(job.spec, workload);
  play_ = std::make_unique<Play>(job, workload, control, options, observer);
}

Session::~Session() = default;

Result Session::play(const Phase& phase) { return play_->play(phase); }

Result run_job(const LoadedJob& job, const Workload& workload, Control& control,
               const RunOptions& options, Observer& observer) {
  const RunSpec& run = job.spec.run;
  Phase phase{kInOrder, run.warmup, run.iterations, run.verify, run.min_seconds, run.end};
  if (job.spec.compression && job.spec.compression->adapts) {
    if (!job.spec.slice.empty())
      throw Error(
          job.spec.source_of("compression.budget_ms") +
          ": compression.budget_ms: ratios follow the whole network, of which a slice plays "
          "a part; leave it out, or use scale.mode: dilate");
    AdaptiveRatios ratios(job.spec, workload);
    phase.program = AdaptiveRatios::kProgram;
    phase.chooser = &ratios;
    Result result = Session(job, ratios.workload(), control, options, observer).play(phase);
    ratios.describe(result);
    return result;
  }
  if (workload.jobs.empty()) return Session(job, workload, control, options, observer).play(phase);
  return play_jobs(job, workload, control, options, observer, phase);
}

}  // namespace ghostrank
