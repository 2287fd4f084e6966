// ghostrank run: plays a job, watches it, writes the result.
//
// Every process of a job runs this. Process 0 prints and writes; the others only report errors.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "emulator/common/blob.h"
#include "emulator/common/log.h"
#include "emulator/engine.h"
#include "emulator/process_checks.h"
#include "emulator/segment.h"
#include "emulator/traffic/traffic.h"
#include "emulator/tuner/tuner.h"
#include "profiles/error.h"
#include "profiles/load/config.h"
#include "profiles/load/load.h"
#include "profiles/load/named_files.h"
#include "profiles/planners/plan.h"
#include "tools/report/expectation.h"
#include "tools/report/files/output_files.h"
#include "tools/report/pictures/chrome_trace.h"
#include "tools/report/pictures/heat_map.h"
#include "tools/report/plan_report.h"
#include "tools/report/result_json.h"
#include "tools/report/run_report.h"
#include "tools/switching/job_switch.h"
#include "tools/text/table.h"
#include "tools/verbs.h"
#include "tools/verbs/launch_line.h"
#include "tools/version.h"
#include "tools/watch/outcome.h"
#include "tools/watch/patience.h"
#include "tools/watch/run_watch.h"
#include "tools/watch/signals.h"

namespace ghostrank {
namespace {

constexpr int kDefaultTraceRanks = 16;

struct RunFlags {
  JobFlags job;
  std::string json, csv, trace, trace_ranks, heat_map, launch;
  std::vector<std::string> expect;
  LogFlags log;
  bool quiet = false, print_config = false, dry_run = false, allow_unfaithful = false;
};

bool read_flags(const Argv& argv, RunFlags& flags) {
  CLI::App app("Play a job: real messages at the right time, or all of it in virtual time.",
               "ghostrank run");
  add_job_flags(app, flags.job);
  const auto file = [&](const char* name, std::string& path, const char* what, const char* type) {
    app.add_option(name, path, what)->type_name(type)->group("Output");
  };
  const auto flag = [&](const char* name, bool& value, const char* what, const char* group) {
    app.add_flag(name, value, what)->group(group);
  };
  file("--json", flags.json, "the result (schema ghostrank/result/1); - is stdout", "FILE|-");
  file("--csv", flags.csv, "one row per measured iteration; - is stdout", "FILE|-");
  file("--trace", flags.trace, "Chrome trace for Perfetto", "FILE.json[.gz]");
  file("--trace-ranks", flags.trace_ranks,
       "ranks to trace: 0,8-15; default: the first of each node, at most 16", "RANKS");
  file("--heatmap", flags.heat_map,
       "how busy the links of the topology were over time, as a picture", "FILE.svg");
  flag("-q,--quiet", flags.quiet, "no progress, no tables", "Output");
  add_log_flags(app, flags.log);
  flag("--print-config", flags.print_config, "print every key, its value and origin; do not run",
       "Job");
  flag("--dry-run", flags.dry_run, "say what would be sent; do not run", "Job");
  flag("--allow-unfaithful", flags.allow_unfaithful,
       "exit 0 although the machine could not keep up", "Outcome");
  app.add_option("--expect", flags.expect,
                 "exit 1 unless a number of the result is below or above a bound; repeatable")
      ->type_name("KEY<VALUE")
      ->allow_extra_args(false)
      ->group("Outcome");
  app.add_option("--print-launch", flags.launch,
                 "print the commands that start the job on its hosts; do not run: mpirun (the "
                 "default), srun, torchrun, env")
      ->expected(0, 1)
      ->default_str("mpirun")
      ->check(one_of({std::begin(kLaunchers), std::end(kLaunchers)}))
      ->type_name("[LAUNCHER]")
      ->group("Job");
  app.footer(
      "Examples:\n"
      "  ghostrank run job.yaml --json out.json\n"
      "  ghostrank run job.yaml -s fabric.kind=virtual -s cluster.nodes=1024\n"
      "  ghostrank run job.yaml --expect 'step_time.median<0.5' --trace out.json.gz\n"
      "  ghostrank run job.yaml -s 'hosts=[{name: s1}, {name: s2}]' --print-launch\n"
      "  RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 ghostrank run job.yaml\n\n"
      "Exit status: 0 ok; 1 failed, wrong, not faithful or short of an --expect; 2 usage or job;\n"
      "3 environment; 129, 130, 143, 152 stopped by a signal.");
  if (!parse(app, argv)) return false;
  const std::vector<std::string> of_a_run{"--csv",     "--trace",    "--trace-ranks",
                                          "--heatmap", "--log-file", "--expect"};
  refuse_beside(app, "--dry-run", of_a_run);
  refuse_beside(app, "--print-config", {"--json", "--dry-run"});
  refuse_beside(app, "--print-config", of_a_run);
  return true;
}

std::vector<WorldRank> ranks_to_trace(const RunFlags& flags, const LoadedJob& job, int ranks) {
  if (flags.trace.empty()) {
    if (!flags.trace_ranks.empty()) throw Error("--trace-ranks needs --trace FILE");
    return {};
  }
  const ClusterSpec& cluster = job.spec.cluster;
  const std::vector<Node>& slice = job.spec.slice;
  if (!flags.trace_ranks.empty()) {
    const std::vector<WorldRank> named = parse_ranks(flags.trace_ranks, ranks);
    for (const WorldRank rank : named)
      if (!slice.empty() && std::ranges::count(slice, cluster.node_of(rank)) == 0)
        throw Error("--trace-ranks: rank " + to_string(rank) + " is on node " +
                    to_string(cluster.node_of(rank)) +
                    ", which scale.nodes leaves out; name ranks of the slice");
    return named;
  }
  std::vector<WorldRank> first_of_nodes;
  const int nodes = slice.empty() ? cluster.nodes : static_cast<int>(slice.size());
  for (int i = 0; i < std::min(nodes, kDefaultTraceRanks); ++i) {
    const int node = slice.empty() ? i : slice[static_cast<std::size_t>(i)].value();
    if (const int rank = node * cluster.gpus_per_node; rank < ranks)
      first_of_nodes.emplace_back(rank);
  }
  return first_of_nodes;
}

// The ranks that process 0 traces: it writes the trace, so its flags count on every process.
std::vector<WorldRank> traced_by_first(const std::vector<WorldRank>& mine, Control& control) {
  const std::vector<std::string> all = control.all_gather(BlobWriter().put(mine).bytes());
  std::vector<WorldRank> ranks;
  if (!all.empty()) BlobReader(all[0]).get(ranks);
  return ranks;
}

// Where the pairs go that are too many for the JSON; empty without --json.
std::string pairs_path(const RunFlags& flags) {
  if (flags.json.empty()) return "";
  return is_in_place(flags.json) ? "ghostrank-pairs.csv" : flags.json + ".pairs.csv";
}

WatchOptions watch_options(const RunFlags& flags, bool first) {
  WatchOptions options;
  options.first = first;
  if (!flags.json.empty() && !is_in_place(flags.json)) options.kept_beside = flags.json;
  options.announce = !flags.quiet;
  const bool live = is_smart_terminal(STDERR_FILENO) && flags.json != "-";
  options.progress =
      flags.quiet ? Progress::Mode::silent : (live ? Progress::Mode::live : Progress::Mode::plain);
  return options;
}

// Writes the result's files, then removes the iterations saved on the way. Returns the exit status.
int write_files(const RunFlags& flags, Result& result, const Workload& workload, RunWatch& watch) {
  std::vector<std::function<void()>> writes;
  if (!flags.json.empty()) {
    if (result.pairs.size() > kMaxPairsInJson && result.pairs_file.empty()) {
      result.pairs_file = pairs_path(flags);
      writes.emplace_back([&] { write_pairs_csv(result.pairs_file, result); });
    }
    writes.emplace_back([&] {
      write_whole(flags.json, result_json(result));
      watch.result_saved();
    });
  }
  if (!flags.csv.empty())
    writes.emplace_back([&] { write_whole(flags.csv, iterations_csv(result)); });
  if (!flags.trace.empty())
    writes.emplace_back([&] { write_chrome_trace(flags.trace, result, workload); });
  if (!flags.heat_map.empty())
    writes.emplace_back([&] { write_whole(flags.heat_map, link_heat_map(result)); });
  return write_each(writes);
}

// Returns the exit status of process 0 and prints to stderr why it is not 0.
int outcome(const RunFlags& flags, const std::vector<Expectation>& expectations,
            const Result& result, const Control& control, int signal) {
  const std::string first = verdict(result);
  if (!result.interrupted.empty() || control.stop() != Stop::none) {
    failed(first);
    return std::max(1, stopped_status(control, signal));
  }
  int status = 0;
  if (result.verify && result.verify->wrong_elements > 0) status = failed(first);
  if (!result.fidelity.faithful && !result.fidelity.modelled && !flags.allow_unfaithful) {
    status = failed("not faithful: " + result.fidelity.reason + "; " +
                    remedy_for(result.fidelity.reason, "scale.dilation"));
  }
  for (const Expectation& expectation : expectations) {
    if (const std::string why = missed(expectation, result); !why.empty()) status = failed(why);
  }
  return status;
}

// The facts about a run that the engine does not know.
Result identity_of(const Argv& argv, const LoadedJob& job) {
  Result identity;
  identity.version = GHOSTRANK_VERSION;
  identity.build = build_facts();
  identity.argv = argv;
  identity.config_json = with_files(job.config_json, named_files(job));
  identity.job_name = std::filesystem::path(job.spec.file).stem();
  identity.started_utc = utc_now();
  return identity;
}

void sign(Result& result, const Result& identity) {
  result.version = identity.version;
  result.build = identity.build;
  result.argv = identity.argv;
  result.config_json = identity.config_json;
  result.job_name = identity.job_name;
  result.started_utc = identity.started_utc;
}

// Plays the job once all processes have met.
int play(const Argv& argv, const RunFlags& flags, const LoadedJob& job, const Workload& workload,
         const RunOptions& options, const std::vector<Expectation>& expectations, Control& control,
         StopOnSignal& signals) {
  const Result identity = identity_of(argv, job);
  RunWatch watch(job, identity, watch_options(flags, control.world().rank == 0));
  const std::unique_ptr<JobSwitch> network_switch = JobSwitch::start(job.spec, control);
  RunOptions with_switch = options;
  with_switch.network_switch = network_switch.get();
  Result result = run_job(job, workload, control, with_switch, watch);
  watch.ended();
  signals.run_ended();
  if (const int rank = control.world().rank; rank != 0) {
    const Stop stop = control.stop();
    if (stop != Stop::none && stop != Stop::interrupted)
      failed("process " + std::to_string(rank) + ": " + control.stop_reason());
    return stopped_status(control, signals.received());
  }
  sign(result, identity);
  if (result.spans_dropped > 0) {
    result.notes.push_back("the trace is cut: " + std::to_string(result.spans_dropped) +
                           " spans did not fit; name fewer --trace-ranks");
  }
  const int unwritten = write_files(flags, result, workload, watch);
  if (!flags.quiet && flags.json != "-" && flags.csv != "-") {
    std::fputs(report(job, result, paint_for(STDOUT_FILENO)).c_str(), stdout);
  }
  const int status = outcome(flags, expectations, result, control, signals.received());
  return unwritten != 0 ? unwritten : status;
}

// False, too, where `tune` has no effect; the loader has noted that.
bool is_tuned(const JobSpec& spec) {
  return spec.parallel.tune && !spec.program && !is_network(spec.fabric.kind);
}

LoadedJob tuned_job(const LoadedJob& job, Control& control) {
  const Tuned tuned = tune(job, control);
  LoadedJob out = job;
  out.spec.parallel = tuned.parallel;
  if (!tuned.note.empty()) out.spec.notes.push_back(tuned.note);
  return out;
}

void check_files(const RunFlags& flags, const JobSpec& spec, const Workload& workload) {
  std::vector<Output> outputs{{"--json", flags.json},
                              {"--csv", flags.csv},
                              {"--trace", flags.trace},
                              {"--heatmap", flags.heat_map},
                              {"--log-file", flags.log.file}};
  check_outputs(outputs);
  outputs.push_back({"the pairs of --json", pairs_path(flags)});
  try {
    check_outputs(outputs);
  } catch (const Error&) {
    // Counting the pairs takes as long as planning, so they are counted only here.
    if (plan_traffic(spec, workload).pairs.size() > kMaxPairsInJson) throw;
  }
}

Workload planned(const LoadedJob& job, bool quiet) {
  const Patience patience("planning", !quiet);
  return plan_workload(job.spec);
}

// --print-config and --dry-run, on process 0.
void show(const RunFlags& flags, const World& world) {
  const LoadedJob job = load(flags.job);
  if (flags.print_config) {
    if (world.rank == 0) print_config(job);
    return;
  }
  const Workload workload = planned(job, flags.quiet);
  if (world.rank == 0) show_plan(job, workload, {flags.json, "", flags.quiet});
}

// What a process knows before it meets the others.
struct Prepared {
  LoadedJob job;
  Workload workload;
  std::vector<Expectation> expectations;
  RunOptions options;
};

Prepared prepare(const RunFlags& flags, const World& world) {
  Prepared p;
  p.job = load(flags.job);
  p.workload = planned(p.job, flags.quiet);
  check_processes(p.job.spec, p.workload, world.size);
  for (const std::string& text : flags.expect) p.expectations.push_back(parse_expectation(text));
  if (world.rank == 0) check_files(flags, p.job.spec, p.workload);
  p.options.trace_ranks = ranks_to_trace(flags, p.job, p.workload.ranks);
  p.options.spill_path = pairs_path(flags);
  p.options.link_times = !flags.heat_map.empty();
  if (p.options.link_times) check_heat_map(p.job.spec, world.size);
  start_log(flags.log, world.rank);
  return p;
}

int meet_and_play(const Argv& argv, const RunFlags& flags, const World& world) {
  Prepared prepared;
  if (const int mistaken = prepared_here(world, [&] { prepared = prepare(flags, world); }))
    return mistaken;
  auto& [job, workload, expectations, options] = prepared;
  log_info("ghostrank " GHOSTRANK_VERSION " (", build_facts().commit, "): job ", job.spec.file,
           ", ", workload.ranks, " ranks, process ", world.rank, " of ", world.size);
  const std::unique_ptr<Control> control = meet(world, job.spec.run);
  StopOnSignal signals(*control);
  const int status = unless_interrupted(*control, signals, [&] {
    options.trace_ranks = traced_by_first(options.trace_ranks, *control);
    if (!is_tuned(job.spec))
      return play(argv, flags, job, workload, options, expectations, *control, signals);
    const LoadedJob tuned = tuned_job(job, *control);
    return play(argv, flags, tuned, plan_workload(tuned.spec), options, expectations, *control,
                signals);
  });
  control->close();
  return status;
}

// The command line of each process: without --print-launch and its value. Launchers may leave the
// environment behind, so what it says of the job is set again.
Argv launched(const Argv& argv) {
  constexpr std::string_view kFlag = "--print-launch";
  const auto is_launcher = [](const std::string& word) {
    return std::find(std::begin(kLaunchers), std::end(kLaunchers), word) != std::end(kLaunchers);
  };
  Argv rest = job_variables();
  if (!rest.empty()) rest.insert(rest.begin(), "env");
  rest.insert(rest.end(), argv.begin(), argv.begin() + 2);  // ghostrank run
  for (std::size_t i = 2; i < argv.size(); ++i) {
    if (argv[i] == kFlag) {
      if (i + 1 < argv.size() && is_launcher(argv[i + 1])) ++i;
    } else if (!argv[i].starts_with(std::string(kFlag) + "=")) {
      rest.push_back(argv[i]);
    }
  }
  return rest;
}

}  // namespace

int verb_run(const Argv& argv) {
  RunFlags flags;
  if (!read_flags(argv, flags)) return 0;
  if (!flags.launch.empty()) {
    if (flags.job.path == "-")
      throw Error(
          "--print-launch: every process reads the job, and launchers give standard input to one "
          "of them or none; give the job's file");
    const LoadedJob job = load(flags.job);
    std::fputs(launch_lines(flags.launch, job.spec, launched(argv)).c_str(), stdout);
    return 0;
  }
  const World world = world_from_environment();
  if (flags.trace == "-") throw Error("--trace -: a trace needs a file; name one");
  if (flags.heat_map == "-") throw Error("--heatmap -: a picture needs a file; name one");
  if (flags.print_config || flags.dry_run) {
    show(flags, world);
    return 0;
  }
  return meet_and_play(argv, flags, world);
}

}  // namespace ghostrank
