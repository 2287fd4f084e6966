// Plays the patterns of `ghostrank bench`: builds the flows, plays them phase by phase, and takes
// the times from the receivers' traces.
#include "tools/verbs/bench/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <unistd.h>

#include "emulator/engine.h"
#include "emulator/process_checks.h"
#include "emulator/segment.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/workload/traffic_pattern.h"
#include "tools/report/files/output_files.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs/bench/play.h"
#include "tools/verbs/bench/watch.h"
#include "tools/watch/outcome.h"
#include "tools/watch/signals.h"

namespace ghostrank {
namespace {

constexpr int kMostPairRanks = 256;
constexpr int kMostRoles = 65536;              // each rank has its own role
constexpr std::uint64_t kMostSpans = 500'000;  // process 0 receives them after a phase

// Tells which flows cross the network. On libfabric, two ranks of one process exchange messages
// inside that process, which says nothing of the network.
class OnNetwork {
 public:
  OnNetwork(const JobSpec& spec, const Workload& workload, int processes) {
    if (!is_network(spec.fabric.kind) || spec.fabric.colocated == Colocated::wire) return;
    const Cluster cluster(spec, workload, processes);
    for (const WorldRank r : each<WorldRank>(workload.ranks))
      host_of_.push_back(cluster.location(r).host);
  }
  bool operator()(WorldRank a, WorldRank b) const {
    return host_of_.empty() || host_of_[a] != host_of_[b];
  }

 private:
  VectorBy<WorldRank, Host> host_of_;  // empty: all flows cross the network
};

constexpr char kWithinProcess[] =
    "left out: what stays within one process, and never reaches the network";

// The phases of one pattern, and `read`, which turns a phase's result into rows.
struct Pattern {
  LoadedJob job;
  Workload workload;
  std::vector<Phase> phases;
  std::vector<std::string> phase_names;
  std::function<void(std::size_t phase, const Result&, PatternReport&)> read;
  PatternReport report;
  bool traced = true;
};

// Seconds from the start to the arrival of each flow's last message, by receiving rank.
std::map<WorldRank, double> ends_of_flows(const Result& result) {
  std::map<WorldRank, double> ends;
  for (const Span& span : result.spans) {
    if (span.label != kFlowLabel) continue;
    double& end = ends[span.rank];
    end = std::max(end, seconds(span.start + span.duration));
  }
  return ends;
}

double rate_GBps(double bytes, double seconds) { return seconds > 0 ? bytes / seconds * 1e-9 : 0; }

// Without -e there is one size: -b, or 1 MiB.
SizeRange pattern_range(const BenchFlags& flags) {
  const std::uint64_t size = flags.first_bytes.value_or(1u << 20);
  return range_of(flags, {size, size, 1, 1u << 20});
}

std::uint64_t one_size(const BenchFlags& flags) {
  const SizeRange range = pattern_range(flags);
  if (range.first != range.last) {
    throw Error("bench " + flags.what + " has one size: give -b alone");
  }
  return range.first;
}

void check_ranks(const BenchFlags& flags, int ranks, int least, int most) {
  if (ranks >= least && ranks <= most) return;
  throw Error("bench " + flags.what + " plays " + std::to_string(least) + " to " +
              std::to_string(most) + " ranks, here are " + std::to_string(ranks) +
              "; change --ranks");
}

Pattern pairs(const BenchFlags& flags, LoadedJob job, int processes) {
  const int ranks = job.spec.cluster.gpus(), messages = job.spec.run.iterations;
  check_ranks(flags, ranks, 2, kMostPairRanks);
  const std::uint64_t bytes = one_size(flags);
  Pattern p;
  p.workload = pair_phases(ranks, bytes, messages);
  const OnNetwork on_network(job.spec, p.workload, processes);
  for (int k = 1; k < ranks; ++k) {
    const std::string name = "distance " + std::to_string(k);
    p.phase_names.insert(p.phase_names.end(), {name + ", bandwidth", name + ", latency"});
  }
  p.report.table.columns = {"src", "dst", "GBps", "latency_us"};
  p.report.table.rows.resize(ranks * ranks);
  p.report.facts = {
      "bandwidth: " + humane_count(messages, "message") + " of " +
          humane_bytes(static_cast<double>(bytes)) + "; latency: half of a round trip of 1 byte",
      "every rank to the one k further on at the same time, k = 1 to " + std::to_string(ranks - 1)};
  p.read = [=](std::size_t phase, const Result& result, PatternReport& report) {
    const auto k = static_cast<int>(phase / 2 + 1);
    const bool bandwidth = phase % 2 == 0;
    for (const auto& [rank, end] : ends_of_flows(result)) {
      // A flow is timed at its receiver, a round trip at the rank that began it.
      const WorldRank from = bandwidth ? WorldRank((rank.value() - k + ranks) % ranks) : rank;
      const WorldRank to((from.value() + k) % ranks);
      if (!on_network(from, to)) continue;
      auto& row = report.table.rows[from.index() * static_cast<std::size_t>(ranks) + to.index()];
      // A run that is stopped may have the one and not the other.
      if (row.empty()) row = {double(from.value()), double(to.value()), NAN, NAN};
      if (bandwidth) {
        row[2] = rate_GBps(static_cast<double>(bytes) * messages, end);
      } else {
        row[3] = end / messages / 2 * 1e6;
      }
    }
  };
  p.job = std::move(job);
  return p;
}

// Permutation and bisection: rank r sends to target[r].
Pattern flow_sets(const BenchFlags& flags, LoadedJob job, VectorBy<WorldRank, WorldRank> target,
                  int processes) {
  const int messages = job.spec.run.iterations;
  const std::vector<std::uint64_t> sizes = sizes_of(pattern_range(flags));
  Pattern p;
  p.workload = permutation_phases(target, sizes, messages);
  const OnNetwork on_network(job.spec, p.workload, processes);
  VectorBy<WorldRank, WorldRank> source(target.size());
  for (const WorldRank r : target.keys()) source[target[r]] = r;
  for (const std::uint64_t bytes : sizes) {
    p.phase_names.push_back(humane_bytes(static_cast<double>(bytes)));
  }
  p.report.table.columns = {"size_bytes", "flows",    "min_GBps",  "median_GBps",
                            "max_GBps",   "sum_GBps", "slowest_us"};
  p.report.flows.columns = {"size_bytes", "src", "dst", "GBps"};
  p.report.facts = {humane_count(messages, "message") + " per flow, all handed over at once"};
  p.read = [=](std::size_t phase, const Result& result, PatternReport& report) {
    const auto bytes = static_cast<double>(sizes[phase]);
    std::vector<double> rates;
    double slowest = 0;
    for (const auto& [rank, end] : ends_of_flows(result)) {
      const WorldRank from = source[rank];
      if (!on_network(from, rank)) continue;
      rates.push_back(rate_GBps(bytes * messages, end));
      slowest = std::max(slowest, end);
      report.flows.rows.push_back({bytes, static_cast<double>(from.value()),
                                   static_cast<double>(rank.value()), rates.back()});
    }
    const auto count = static_cast<double>(rates.size());
    const Spread s = spread_of(rates);
    report.table.rows.push_back({bytes, count, s.least, s.middle, s.greatest,
                                 rate_GBps(bytes * messages * count, slowest), slowest * 1e6});
  };
  p.job = std::move(job);
  return p;
}

Pattern permutation(const BenchFlags& flags, LoadedJob job, int processes) {
  const int ranks = job.spec.cluster.gpus();
  check_ranks(flags, ranks, 2, kMostRoles);
  const std::uint64_t seed = job.spec.run.seed;
  Pattern p = flow_sets(flags, std::move(job), random_cycle(ranks, seed), processes);
  p.report.facts.push_back("a random cycle through all ranks, seed " + std::to_string(seed));
  return p;
}

Pattern bisection(const BenchFlags& flags, LoadedJob job, int processes) {
  const int ranks = job.spec.cluster.gpus();
  check_ranks(flags, ranks, 2, kMostRoles);
  if (ranks % 2 != 0) throw Error("bench bisection needs an even number of ranks; change --ranks");
  Pattern p = flow_sets(flags, std::move(job), opposite(ranks), processes);
  p.report.facts.push_back("rank r to and from rank r + " + std::to_string(ranks / 2) +
                           "; both directions count");
  return p;
}

Pattern incast(const BenchFlags& flags, LoadedJob job, int processes) {
  const int ranks = job.spec.cluster.gpus();
  check_ranks(flags, ranks, 2, kMostRoles);
  const std::uint64_t bytes = one_size(flags);
  Pattern p;
  const OnNetwork on_network(job.spec, incast_phases(ranks, {}, {}, 0), processes);
  std::vector<WorldRank> sources;
  for (const WorldRank r : each<WorldRank>(ranks))
    if (r != WorldRank(0) && on_network(WorldRank(0), r)) sources.push_back(r);
  std::vector<int> fan_ins;
  const auto most = static_cast<int>(sources.size());
  for (int f = 1; f < most; f *= 2) fan_ins.push_back(f);
  fan_ins.push_back(most);
  p.workload = incast_phases(ranks, sources, fan_ins, bytes);
  for (const int f : fan_ins) p.phase_names.push_back("fan-in " + std::to_string(f));
  p.traced = false;
  p.report.table.columns = {"fan_in", "completion_us", "min_us", "max_us", "goodput_GBps"};
  p.report.facts = {"rank 0 asks and gets " + humane_bytes(static_cast<double>(bytes)) +
                    " from each; median of " +
                    humane_count(job.spec.run.iterations, "time", "times")};
  p.read = [=](std::size_t phase, const Result& result, PatternReport& report) {
    std::vector<double> times;
    for (const IterationReport& i : result.iterations) times.push_back(i.rank0_seconds);
    const Spread s = spread_of(times);
    const auto fan_in = static_cast<double>(fan_ins[phase]);
    report.table.rows.push_back({fan_in, s.middle * 1e6, s.least * 1e6, s.greatest * 1e6,
                                 rate_GBps(fan_in * static_cast<double>(bytes), s.middle)});
  };
  p.job = std::move(job);
  return p;
}

using Builder = Pattern (*)(const BenchFlags&, LoadedJob, int processes);
const std::map<std::string, Builder> kPatterns{
    {"pairs", pairs}, {"permutation", permutation}, {"incast", incast}, {"bisection", bisection}};

Pattern build(const BenchFlags& flags, int processes) {
  LoadedJob job = bench_job(flags, std::nullopt, processes);
  const FabricSpec& fabric = job.spec.fabric;
  const bool partly = is_network(fabric.kind) && fabric.colocated != Colocated::wire;
  if (partly && processes == 1) {
    throw Error("bench " + flags.what +
                " over libfabric needs several processes, as what stays within one never reaches "
                "the network; start them with mpirun, or choose --fabric memory or virtual");
  }
  Pattern p = kPatterns.at(flags.what)(flags, std::move(job), processes);
  if (partly && p.workload.ranks > processes) p.report.facts.push_back(kWithinProcess);
  const RunSpec& run = p.job.spec.run;
  const auto spans = static_cast<std::uint64_t>(p.workload.ranks) * run.iterations;
  if (p.traced && spans > kMostSpans) {
    throw Error("bench " + flags.what + ": " + std::to_string(spans) +
                " messages in a phase are more than are kept (" + std::to_string(kMostSpans) +
                "); lower -n or --ranks");
  }
  for (std::size_t i = 0; i < p.phase_names.size(); ++i) {
    // A traced phase plays all its messages in one iteration.
    p.phases.push_back({static_cast<int>(i), run.warmup, p.traced ? 1 : run.iterations, false});
  }
  p.report.pattern = flags.what;
  p.report.ranks = p.workload.ranks;
  return p;
}

void dry_run(const Pattern& p) {
  double messages = 0, bytes = 0;
  for (const Phase& phase : p.phases) {
    const TrafficPlan t = plan_traffic(p.job.spec, p.workload, phase.program);
    messages += static_cast<double>(t.wire_messages + t.intra_messages) * phase.iterations;
    bytes += static_cast<double>(t.wire_bytes + t.intra_bytes) * phase.iterations;
  }
  std::printf("%s would send %s messages, %s, in %s\n", p.report.pattern.c_str(),
              humane_count(messages).c_str(), humane_bytes(bytes).c_str(),
              humane_count(static_cast<double>(p.phases.size()), "phase").c_str());
}

void play(Pattern& p, const BenchFlags& flags, bool live, Control& control) {
  RunOptions options;
  if (p.traced) {
    for (const WorldRank r : each<WorldRank>(p.workload.ranks)) options.trace_ranks.push_back(r);
  }
  BenchWatch watch(p.phases.size(), live, [&](const Result& started) {
    std::vector<std::string> facts = bench_facts(p.job, started);
    p.report.facts.insert(p.report.facts.begin(), facts.begin(), facts.end());
  });
  const LoadedJob compared = with_calls(p.job, flags, flags.what, "");
  Session session(compared, p.workload, control, options, watch);
  for (std::size_t i = 0; i < p.phases.size(); ++i) {
    watch.begin(i, p.phase_names[i]);
    const Result result = session.play(p.phases[i]);
    if (control.stop() != Stop::none) return;
    if (control.world().rank != 0) continue;
    p.read(i, result, p.report);
    add_phase(p.report, result);
  }
}

int outcome(const BenchFlags& flags, const Pattern& p, const Control& control, int signal) {
  if (control.stop() != Stop::none) {
    failed("INCOMPLETE: " + std::to_string(p.report.phases) + " of " +
           std::to_string(p.phases.size()) + " phases; " + control.stop_reason());
    return std::max(1, stopped_status(control, signal));
  }
  if (p.report.unfaithful == 0 || flags.allow_unfaithful) return 0;
  return failed("not faithful: " + p.report.reason + "; " +
                remedy_for(p.report.reason, "--dilation"));
}

// Drops the rows of pairs that were not played.
void drop_empty_rows(NumberTable& numbers) {
  std::erase_if(numbers.rows, [](const std::vector<double>& row) { return row.empty(); });
}

}  // namespace

bool is_pattern(const std::string& what) { return kPatterns.contains(what); }

int bench_pattern(const BenchFlags& flags, const World& world) {
  const bool first = world.rank == 0;
  if (flags.print_config || flags.dry_run) {
    const Pattern p = build(flags, world.size);
    if (first && flags.print_config) print_config(p.job);
    if (first && flags.dry_run) dry_run(p);
    return 0;
  }
  Pattern p;
  const int mistaken = prepared_here(world, [&] {
    p = build(flags, world.size);
    if (first)
      check_outputs({{"--json", flags.json},
                     {"--csv", flags.csv},
                     {"--svg", flags.svg},
                     {"--log-file", flags.log.file}});
    check_processes(p.job.spec, p.workload, world.size);
    start_log(flags.log, world.rank);
  });
  if (mistaken != 0) return mistaken;
  const bool table =
      first && !flags.quiet && flags.json != "-" && flags.csv != "-" && flags.svg != "-";
  const std::unique_ptr<Control> control = meet(world, p.job.spec.run);
  StopOnSignal signals(*control);
  const int status = unless_interrupted(*control, signals, [&] {
    play(p, flags, table && is_smart_terminal(STDERR_FILENO), *control);
    signals.run_ended();
    if (!first) return stopped_status(*control, signals.received());
    if (control->stop() != Stop::none) p.report.interrupted = control->stop_reason();
    drop_empty_rows(p.report.table);
    if (flags.what == "pairs") p.report.remarks = outliers(p.report.table);
    const int columns = is_terminal(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO)
                                                   : std::numeric_limits<int>::max();
    if (table)
      std::fputs(pattern_text(p.report, paint_for(STDOUT_FILENO), columns).c_str(), stdout);
    const int unwritten = write_each(std::vector<TextFile>{
        {flags.csv, [&] { return numbers_csv(p.report.table); }},
        {flags.json, [&] { return pattern_json(p.report, p.job.config_json); }},
        {flags.svg, [&] { return pattern_svg(p.report); }}});
    const int found = outcome(flags, p, *control, signals.received());
    return unwritten != 0 ? unwritten : found;
  });
  control->close();
  return status;
}

}  // namespace ghostrank
