// One collective over sizes, measured as nccl-tests does: per size a warm-up, then calls back to
// back without a barrier, and with -c further calls with real data that are checked. All sizes are
// phases of one session.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <unistd.h>

#include "collectives/library.h"
#include "emulator/engine.h"
#include "emulator/process_checks.h"
#include "emulator/segment.h"
#include "emulator/traffic/schedules.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/workload/traffic_pattern.h"
#include "tools/report/files/output_files.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs/bench/play.h"
#include "tools/verbs/bench/split.h"
#include "tools/verbs/bench/watch.h"
#include "tools/version.h"
#include "tools/watch/outcome.h"
#include "tools/watch/patience.h"
#include "tools/watch/signals.h"

namespace ghostrank {
namespace {

constexpr int kWidthOfBothHalves = 118;  // of a row, in columns
// Without -n, a size gets as many calls as stay below this number of messages, but at least one.
constexpr double kMostMessages = 4e6;
constexpr double kImbalance = 0.5;  // default of --imbalance

struct Test {  // a line of the table
  BenchCall call;
  BenchSize size;
  int iterations = 0;
};

struct Plan {  // the same on every process
  BenchHead head;
  LoadedJob job;
  std::vector<Test> tests;  // all sizes of the first kind of call, then those of the next
  std::size_t sizes = 0;
  Split split;
  int ranks = 0;      // that make a call together
  Workload workload;  // a phase per test
};

// Messages of one call of all groups by the closed form of its algorithm, times the channels: an
// estimate, because it leaves out slices. Without a closed form they are counted.
double messages_of(const JobSpec& spec, const Workload& workload, std::size_t phase) {
  const Op& op = workload.roles[0].iterations[phase].streams[0][0];
  if (op.kind != Op::Kind::collective) return workload.ranks;  // one each
  const auto groups = static_cast<int>(workload.groups.size());
  const Collective c = collective_of(workload, op, workload.ranks / groups);
  const Algorithm* row = spec.collectives.row(c.func, workload.group_names[op.group]);
  if (row == nullptr || row->ends) return 0;  // refused later, or its agents decide as they go
  if (!row->cost) {
    const TrafficPlan traffic = plan_traffic(spec, workload, static_cast<int>(phase));
    return static_cast<double>(traffic.wire_messages + traffic.intra_messages);
  }
  return static_cast<double>(row->cost(c).messages) * groups *
         std::max(1, spec.collectives.channels);
}

void check_values(const BenchFlags& flags, Func func, const std::vector<BenchCall>& calls,
                  const std::string& library) {
  if (!flags.svg.empty()) throw Error("--svg belongs to the patterns; a collective has a table");
  if (flags.imbalance && !is_ragged(func)) {
    throw Error("--imbalance belongs to all_gather_v and all_to_all_v; all blocks of a " +
                std::string(name_of(func)) + " are alike");
  }
  if (flags.aggregated > 1 && library_named(library) == Library::nccl) {
    throw Error(
        "--agg_iters: NCCL plans the calls of a group together, which is not available; use -m 1, "
        "or another library, which makes the calls one after the other");
  }
  for (const BenchCall& call : calls) {
    if (flags.checks == 0) break;
    if (!bench_type(call.type).verifiable) {
      throw Error("--check: " + call.type +
                  " cannot be verified; use a whole-number type, half, float or bfloat16");
    }
    if (call.redop != "sum" && call.redop != "none") {
      throw Error("--check: sums are verified, not " + call.redop + "; use -o sum");
    }
  }
}

// Refuses a protocol that no message would have. In a job, which may have other calls, it passes.
void check_protocol(const BenchFlags& flags, Func func, const Algorithm* row) {
  if (row == nullptr || library_named(row->library) != Library::nccl || row->name != "p2p") return;
  if (protocol_named(flags.protocol).value_or(Protocol::simple) == Protocol::simple) return;
  throw Error("--protocol " + flags.protocol + ": " + std::string(name_of(func)) +
              " is made of NCCL's sends and receives, which use Simple; leave out --protocol");
}

// NCCL_TESTS_MIN_BW: scripts around nccl-tests set it to the least average bus bandwidth, in GB/s.
std::optional<double> demanded_GBps() {
  const char* text = std::getenv("NCCL_TESTS_MIN_BW");
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*end != '\0' || !std::isfinite(value) || value < 0)
    throw Error("environment: NCCL_TESTS_MIN_BW=" + std::string(text) +
                " is no bandwidth in GB/s; give a number such as 40, or unset it");
  return value;
}

BenchHead head_of(const BenchFlags& flags, Func func, const RunSpec& run) {
  BenchHead head;
  head.demanded_GBps = demanded_GBps();
  head.func = func;
  head.sizes = range_of(flags, {});
  head.threads = flags.threads.value_or(1);
  head.gpus = flags.gpus.value_or(1);
  head.checks = flags.checks;
  head.aggregated = flags.aggregated;
  head.timestamps = flags.timestamps;
  head.per_iteration = flags.per_iteration;
  head.narrow = is_terminal(STDOUT_FILENO) && terminal_width(STDOUT_FILENO) < kWidthOfBothHalves;
  head.skipped = flags.skipped;
  head.iterations = run.iterations;
  head.warmup = run.warmup;
  if (head.skipped >= head.iterations) {
    throw Error("--per_iter_skip " + std::to_string(head.skipped) + " leaves none of the " +
                std::to_string(head.iterations) + " iterations");
  }
  return head;
}

Plan plan_of(const BenchFlags& flags, Func func, const World& world) {
  Plan plan;
  plan.job = bench_job(flags, func, world.size);
  const JobSpec& spec = plan.job.spec;
  plan.head = head_of(flags, func, spec.run);
  plan.split = split_from_environment(spec.cluster.gpus());
  const int ranks = plan.ranks = plan.split.groups.empty()
                                     ? spec.cluster.gpus()
                                     : static_cast<int>(plan.split.groups[0].size());
  const std::vector<BenchCall> calls =
      bench_calls(func, ranks, flags.type, flags.redop, flags.root);
  check_values(flags, func, calls, spec.collectives.library);

  std::vector<std::uint64_t> sizes = sizes_of(plan.head.sizes);
  if (func == Func::barrier) sizes.resize(1);  // a barrier has no size
  plan.sizes = sizes.size();
  CollectivePhases phases{func, ranks, {}, 0, spec.run.seed, plan.split.groups};
  if (is_ragged(func)) phases.imbalance = flags.imbalance.value_or(kImbalance);
  for (const BenchCall& call : calls)
    for (const std::uint64_t bytes : sizes) {
      const BenchType named = bench_type(call.type);
      const DataType type = named.played;
      const BenchSize size = bench_size(func, bytes, bytes_of(type), ranks);
      plan.tests.push_back({call, size, 0});
      phases.calls.push_back({size.count, type, call.root,
                              reduction_named(call.redop).value_or(Reduction::sum), named.floats});
    }
  plan.workload = collective_phases(phases);
  check_protocol(flags, func, spec.collectives.row(func, plan.workload.group_names.front()));
  for (std::size_t i = 0; i < plan.tests.size(); ++i) {
    Test& test = plan.tests[i];
    if (is_ragged(func)) {
      const Op& op = plan.workload.roles[0].iterations[i].streams[0][0];
      test.size.size =
          call_elements(collective_of(plan.workload, op, ranks)) * bytes_of(phases.calls[i].dtype);
    }
    const double messages = messages_of(spec, plan.workload, i) * flags.aggregated;
    const double affordable = std::max(1.0, kMostMessages / std::max(1.0, messages));
    test.iterations = flags.iterations
                          ? *flags.iterations
                          : static_cast<int>(std::min<double>(plan.head.iterations, affordable));
  }
  return plan;
}

std::vector<std::string> facts_of(const Plan& plan, const Result& started) {
  std::vector<std::string> facts = bench_facts(plan.job, started);
  const CollectiveSpec& c = plan.job.spec.collectives;
  const Func func = plan.head.func;
  const Algorithm* row = c.row(func, plan.workload.group_names.front());
  facts.push_back("library " + c.library + ", algorithm " +
                  (row == nullptr ? "direct" : std::string(row->name)));
  if (!plan.split.groups.empty())
    facts.push_back(plan.split.text + ": " +
                    humane_count(static_cast<double>(plan.split.groups.size()), "group") + " of " +
                    humane_count(plan.ranks, "rank") + " at once; bandwidths are of one group");
  facts.push_back(plan.head.narrow
                      ? "in-place calls send the same messages; a wider terminal shows them, too"
                      : "out-of-place and in-place send the same messages: measured once, printed "
                        "in both places");
  return facts;
}

// Appends the mean of the `aggregated` calls of each iteration.
void append_each(const std::vector<IterationReport>& calls, int aggregated,
                 double IterationReport::*seconds, std::vector<double>& each) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i % static_cast<std::size_t>(aggregated) == 0) each.push_back(0);
    each.back() += calls[i].*seconds / aggregated;
  }
}

// `plays`: what was played from one start of all ranks to the next; with -z 3 an iteration each,
// else all of them at once.
BenchRow row_of(const Plan& plan, const Test& test, const std::vector<Result>& plays, int average) {
  const int aggregated = plan.head.aggregated;
  BenchRow row;
  row.call = test.call;
  row.size = test.size;
  row.timestamp = local_now();
  for (const Result& play : plays) {
    row.seconds += call_seconds(play.iterations, average) / static_cast<double>(plays.size());
    row.iterations += static_cast<int>(play.iterations.size()) / aggregated;
    append_each(play.iterations, aggregated, &IterationReport::seconds, row.each);
    append_each(play.iterations, aggregated, &IterationReport::late_seconds, row.late);
    row.dilation = std::max(row.dilation, play.dilation);
  }
  const auto worst = std::find_if(plays.begin(), plays.end(),
                                  [](const Result& play) { return !play.fidelity.faithful; });
  const Result& shown = worst != plays.end() ? *worst : plays[0];
  row.fidelity = shown.fidelity;
  judge_mean(row);
  row.messages = shown.messages_per_iteration + shown.intra_node_messages_per_iteration;
  row.bytes = shown.wire_bytes_per_iteration + shown.intra_node_bytes_per_iteration;
  add_bandwidths(plan.head.func, plan.ranks, row);
  return row;
}

void dry_run(const Plan& plan) {
  Table table{{{"size", Align::right},
               {"count", Align::right},
               {"iters", Align::right},
               {"messages/call", Align::right},
               {"bytes/call", Align::right},
               {"time at least", Align::right}},
              {}};
  for (std::size_t i = 0; i < plan.tests.size(); ++i) {
    const Test& test = plan.tests[i];
    const TrafficPlan t = plan_traffic(plan.job.spec, plan.workload, static_cast<int>(i));
    table.rows.push_back({std::to_string(test.size.size), std::to_string(test.size.count),
                          std::to_string(test.iterations),
                          humane_count(static_cast<double>(t.wire_messages + t.intra_messages)),
                          humane_count(static_cast<double>(t.wire_bytes + t.intra_bytes)),
                          humane_seconds(t.step_seconds_at_least)});
  }
  std::fputs(render(table).c_str(), stdout);
}

// The order of the phases: all sizes of one kind of call, repeated once per cycle, then those of
// the next kind. next() returns nothing at the end.
class Agenda {
 public:
  Agenda(const Plan& plan, int cycles)
      : tests_(plan.tests.size()), sizes_(plan.sizes), cycles_(cycles) {}
  std::optional<std::size_t> next() {
    if (first_ == tests_) return std::nullopt;
    const std::size_t phase = first_ + size_;
    if (++size_ == sizes_) {
      size_ = 0;
      if (++cycle_ == cycles_) {
        cycle_ = 0;
        first_ += sizes_;
      }
    }
    return phase;
  }

 private:
  std::size_t tests_, sizes_, first_ = 0, size_ = 0;
  int cycles_, cycle_ = 0;  // 0 cycles: for ever
};

// One row of the table; nothing when the run was stopped meanwhile.
std::optional<BenchRow> play_test(const Plan& plan, const BenchFlags& flags, std::size_t phase,
                                  Session& session, const Control& control) {
  const Test& test = plan.tests[phase];
  const auto program = static_cast<int>(phase);
  const int starts = flags.apart ? test.iterations : 1;
  const int each = test.iterations / starts * flags.aggregated;
  std::vector<Result> plays;
  for (int i = 0; i < starts; ++i) {
    plays.push_back(session.play({program, i == 0 ? plan.head.warmup : 0, each, false}));
    plays.back().pairs.clear();  // a row needs none
    if (control.stop() != Stop::none) return std::nullopt;
  }
  const int standard = has_root(plan.head.func) ? 3 : 1;
  BenchRow row = row_of(plan, test, plays, flags.average.value_or(standard));
  if (flags.checks > 0) {
    const Result checked = session.play({program, 0, flags.checks, true});
    if (control.stop() != Stop::none) return std::nullopt;
    if (checked.verify) row.wrong = checked.verify->wrong_elements;
  }
  return row;
}

// Plays all tests; process 0 prints each row when it ends. Returns the completed rows.
std::vector<BenchRow> play_tests(Plan& plan, const BenchFlags& flags, bool table, Control& control,
                                 BenchIdentity& identity) {
  const bool first = control.world().rank == 0;
  const bool live = table && is_smart_terminal(STDERR_FILENO);
  Patience setting_up("setting up the ranks", live);
  const auto started = [&](const Result& result) {
    setting_up.end();
    identity.hosts = result.hosts;
    plan.head.facts = facts_of(plan, result);
    if (table) std::fputs(bench_header(plan.head).c_str(), stdout);
  };
  BenchWatch watch(plan.tests.size(), live, started);
  if (first) watch.set_timeout(flags.timeout_s, control);
  const LoadedJob compared =
      with_calls(plan.job, flags, std::string(name_of(plan.head.func)), plan.split.text);
  Session session(compared, plan.workload, control, {}, watch);
  std::vector<BenchRow> rows;
  Agenda agenda(plan, flags.cycles);
  while (const std::optional<std::size_t> phase = agenda.next()) {
    watch.begin(*phase, humane_bytes(static_cast<double>(plan.tests[*phase].size.size)));
    std::optional<BenchRow> row = play_test(plan, flags, *phase, session, control);
    if (!row) break;
    watch.clear();
    if (first && table) {
      std::fputs(bench_row(plan.head, *row).c_str(), stdout);
      std::fflush(stdout);
    }
    rows.push_back(std::move(*row));
  }
  return rows;
}

int outcome(const BenchFlags& flags, const BenchHead& head, const std::vector<BenchRow>& rows,
            const Control& control, int signal) {
  if (control.stop() != Stop::none) {
    failed(incomplete(head, rows));
    return std::max(1, stopped_status(control, signal));
  }
  int status = 0;
  if (const std::uint64_t wrong = wrong_elements(rows); wrong > 0) {
    status = failed("WRONG: verification found " + std::to_string(wrong) + " wrong elements");
  }
  if (!fast_enough(head, rows).value_or(true)) {
    status = failed("the average bus bandwidth is less than nine tenths of NCCL_TESTS_MIN_BW");
  }
  const std::string reason = unfaithful_reason(rows);
  if (!reason.empty() && !flags.allow_unfaithful) {
    status = failed("not faithful: " + reason + "; " + remedy_for(reason, "--dilation"));
  }
  return status;
}

}  // namespace

double call_seconds(const std::vector<IterationReport>& iterations, int average) {
  if (iterations.empty()) return 0;
  const auto calls = static_cast<double>(iterations.size());
  if (average == 2) return iterations.back().earliest_end / calls;
  double sum = 0;
  for (const IterationReport& i : iterations) {
    sum += average == 0 ? i.rank0_seconds : average == 1 ? i.rank_seconds : i.seconds;
  }
  return sum / calls;
}

int bench_collective(const Argv& argv, const BenchFlags& flags, Func func, const World& world) {
  const bool first = world.rank == 0;
  if (flags.print_config || flags.dry_run) {
    const Plan plan = plan_of(flags, func, world);
    if (first && flags.print_config) print_config(plan.job);
    if (first && flags.dry_run) dry_run(plan);
    return 0;
  }
  Plan plan;
  const int mistaken = prepared_here(world, [&] {
    plan = plan_of(flags, func, world);
    if (first)
      check_outputs({{"--json", flags.json}, {"--csv", flags.csv}, {"--log-file", flags.log.file}});
    check_processes(plan.job.spec, plan.workload, world.size);
    start_log(flags.log, world.rank);
  });
  if (mistaken != 0) return mistaken;
  const bool table = first && !flags.quiet && flags.json != "-" && flags.csv != "-";
  BenchIdentity identity;
  identity.argv = argv;
  identity.version = GHOSTRANK_VERSION;
  identity.build = build_facts();
  identity.library = plan.job.spec.collectives.library;
  identity.config_json = plan.job.config_json;
  identity.start_time = utc_now();

  const std::unique_ptr<Control> control = meet(world, plan.job.spec.run);
  StopOnSignal signals(*control);
  const int status = unless_interrupted(*control, signals, [&] {
    const std::vector<BenchRow> rows = play_tests(plan, flags, table, *control, identity);
    signals.run_ended();
    identity.end_time = utc_now();
    if (!first) return stopped_status(*control, signals.received());
    if (control->stop() != Stop::none) plan.head.interrupted = control->stop_reason();
    if (table) std::fputs(bench_footer(plan.head, rows).c_str(), stdout);
    const int unwritten = write_each(
        std::vector<TextFile>{{flags.csv, [&] { return bench_csv(plan.head, rows); }},
                              {flags.json, [&] { return bench_json(identity, plan.head, rows); }}});
    const int found = outcome(flags, plan.head, rows, *control, signals.received());
    return unwritten != 0 ? unwritten : found;
  });
  control->close();
  return status;
}

}  // namespace ghostrank
