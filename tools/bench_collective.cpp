// One collective over sizes, as nccl-tests measures it: per size a warm-up, then calls back to back
// without a barrier between them, and with -c more calls with real data that are checked. All sizes
// are phases of one session.
#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include "emulator/engine.h"
#include "emulator/schedules.h"
#include "emulator/traffic.h"
#include "profiles/error.h"
#include "profiles/traffic_pattern.h"
#include "tools/bench_play.h"
#include "tools/bench_watch.h"
#include "tools/humane.h"
#include "tools/outcome.h"
#include "tools/result_json.h"
#include "tools/signals.h"
#include "tools/table.h"

namespace ghostrank {
namespace {

// Without -n a size gets no more messages than this, but at least one call.
constexpr double kMostMessages = 4e6;
constexpr double kImbalance = 0.5;  // of the v-variants

struct Plan {  // the same on every process
  BenchHead head;
  LoadedJob job;
  std::vector<BenchSize> sizes;
  std::vector<int> iterations;  // by size
  Workload workload;
};

// A call's messages by the closed form of its algorithm: an estimate, as channels and slices are
// not in it.
double messages_of(const JobSpec& spec, const Workload& workload, std::size_t phase) {
  const Op& op = workload.roles[0].iterations[phase].streams[0][0];
  if (op.kind != Op::Kind::collective) return workload.ranks;  // one each
  const Collective c = collective_of(workload, op, workload.ranks);
  const Algorithm* row = spec.collectives.row(c.func, workload.group_names[op.group]);
  if (row == nullptr || !row->cost) return 0;  // refused later, or a user's own
  return static_cast<double>(row->cost(c).messages) * std::max(1, spec.collectives.channels);
}

void check_values(const BenchFlags& flags, const BenchType& type, int ranks) {
  if (flags.root < 0 || flags.root >= ranks) {
    throw Error("--root " + std::to_string(flags.root) + ": ranks are 0 to " +
                std::to_string(ranks - 1));
  }
  if (flags.checks > 0 && !type.verifiable) {
    throw Error("--check: " + type.name + " cannot be verified; use int32, float or bfloat16");
  }
  if (flags.checks > 0 && flags.redop != "sum") {
    throw Error("--check: sums are verified, not " + flags.redop + "; use -o sum");
  }
}

Plan plan_of(const BenchFlags& flags, Func func, const World& world) {
  if (!flags.svg.empty()) throw Error("--svg belongs to the patterns; a collective has a table");
  if (flags.imbalance && !is_ragged(func)) {
    throw Error("--imbalance belongs to all_gather_v and all_to_all_v; all blocks of a " +
                std::string(name_of(func)) + " are alike");
  }
  Plan plan;
  BenchHead& head = plan.head;
  head.func = func;
  head.redop = flags.redop;
  head.root = flags.root;
  head.checks = flags.checks;
  head.sizes = range_of(flags, {});
  const BenchType type = bench_type(flags.type);
  head.type = type.name;
  plan.job = bench_job(flags, func, world.size);
  const JobSpec& spec = plan.job.spec;
  head.iterations = spec.run.iterations;
  head.warmup = spec.run.warmup;
  const int ranks = spec.cluster.gpus();
  check_values(flags, type, ranks);

  const std::uint32_t element = bytes_of(type.played);
  CollectivePhases phases{func, ranks, {}, type.played, flags.root, 0, spec.run.seed};
  if (is_ragged(func)) phases.imbalance = flags.imbalance.value_or(kImbalance);
  for (const std::uint64_t bytes : sizes_of(head.sizes)) {
    const BenchSize size = bench_size(func, bytes, element, ranks);
    plan.sizes.push_back(size);
    phases.counts.push_back(size.count);
    if (func == Func::barrier) break;  // has no size
  }
  plan.workload = collective_phases(phases);
  for (std::size_t i = 0; i < plan.sizes.size(); ++i) {
    if (is_ragged(func)) {
      const Op& op = plan.workload.roles[0].iterations[i].streams[0][0];
      plan.sizes[i].size = call_elements(collective_of(plan.workload, op, ranks)) * element;
    }
    const double messages = messages_of(spec, plan.workload, i);
    const double affordable = std::max(1.0, kMostMessages / std::max(1.0, messages));
    plan.iterations.push_back(
        flags.iterations ? *flags.iterations
                         : static_cast<int>(std::min<double>(head.iterations, affordable)));
  }
  return plan;
}

std::vector<std::string> facts_of(const Plan& plan, const Result& started) {
  std::vector<std::string> facts = bench_facts(plan.job, started);
  const CollectiveSpec& c = plan.job.spec.collectives;
  const Func func = plan.head.func;
  const Algorithm* row = c.row(func, plan.workload.group_names.front());
  facts.push_back("library " + c.library + ", algorithm " +
                  (func == Func::send_recv || row == nullptr ? "direct" : std::string(row->name)));
  facts.push_back(
      "out-of-place and in-place send the same messages: measured once, printed in both places");
  return facts;
}

BenchRow row_of(const Plan& plan, std::size_t i, const Result& result, int average) {
  BenchRow row;
  row.size = plan.sizes[i];
  row.seconds = call_seconds(result.iterations, average);
  row.iterations = static_cast<int>(result.iterations.size());
  row.dilation = result.dilation;
  row.messages = result.messages_per_iteration + result.intra_node_messages_per_iteration;
  row.bytes = result.wire_bytes_per_iteration + result.intra_node_bytes_per_iteration;
  row.fidelity = result.fidelity;
  add_bandwidths(plan.head.func, plan.workload.ranks, row);
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
  for (std::size_t i = 0; i < plan.sizes.size(); ++i) {
    const TrafficPlan t = plan_traffic(plan.job.spec, plan.workload, static_cast<int>(i));
    table.rows.push_back({std::to_string(plan.sizes[i].size), std::to_string(plan.sizes[i].count),
                          std::to_string(plan.iterations[i]),
                          humane_count(static_cast<double>(t.wire_messages + t.intra_messages)),
                          humane_count(static_cast<double>(t.wire_bytes + t.intra_bytes)),
                          humane_seconds(t.step_seconds_at_least)});
  }
  std::fputs(render(table).c_str(), stdout);
}

// Plays every size; on process 0 prints rows as they end. Returns what was completed.
std::vector<BenchRow> play_sizes(Plan& plan, const BenchFlags& flags, bool table, Control& control,
                                 BenchIdentity& identity) {
  const bool first = control.world().rank == 0;
  const auto started = [&](const Result& result) {
    identity.hosts = result.hosts;
    plan.head.facts = facts_of(plan, result);
    if (table) std::fputs(bench_header(plan.head).c_str(), stdout);
  };
  const bool live = table && isatty(STDERR_FILENO) == 1;
  BenchWatch watch(plan.sizes.size(), live, started);
  Session session(plan.job, plan.workload, control, {}, watch);
  std::vector<BenchRow> rows;
  for (std::size_t i = 0; i < plan.sizes.size(); ++i) {
    watch.begin(i, humane_bytes(static_cast<double>(plan.sizes[i].size)));
    const Phase timed{static_cast<int>(i), plan.head.warmup, plan.iterations[i], false};
    const Result result = session.play(timed);
    if (control.stop() != Stop::none) break;
    BenchRow row = row_of(plan, i, result, flags.average);
    if (flags.checks > 0) {
      const Result checked = session.play({static_cast<int>(i), 0, flags.checks, true});
      if (control.stop() != Stop::none) break;
      if (checked.verify) row.wrong = checked.verify->wrong_elements;
    }
    watch.clear();
    if (first && table) {
      std::fputs(bench_row(plan.head, row).c_str(), stdout);
      std::fflush(stdout);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

int outcome(const BenchFlags& flags, const std::vector<BenchRow>& rows, const Control& control,
            int signal) {
  if (control.stop() != Stop::none) {
    failed("INCOMPLETE: " + humane_count(static_cast<double>(rows.size()), "size") + " measured; " +
           control.stop_reason());
    return std::max(1, stopped_status(control, signal));
  }
  int status = 0;
  if (const std::uint64_t wrong = wrong_elements(rows); wrong > 0) {
    status = failed("WRONG: verification found " + std::to_string(wrong) + " wrong elements");
  }
  const std::string reason = unfaithful_reason(rows);
  if (!reason.empty() && !flags.allow_unfaithful) {
    status = failed("not faithful: " + reason +
                    "; raise --dilation, or accept it with --allow-unfaithful");
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
  Plan plan = plan_of(flags, func, world);
  const bool first = world.rank == 0;
  if (flags.print_config || flags.dry_run) {
    if (first && flags.print_config) print_config(plan.job);
    if (first && flags.dry_run) dry_run(plan);
    return 0;
  }
  const bool table = first && !flags.quiet && flags.json != "-" && flags.csv != "-";
  BenchIdentity identity;
  identity.argv = argv;
  identity.version = GHOSTRANK_VERSION;
  identity.library = plan.job.spec.collectives.library;
  identity.config_json = plan.job.config_json;
  identity.start_time = utc_now();

  const std::unique_ptr<Control> control = Control::meet(world);
  const StopOnSignal signals(*control);
  const std::vector<BenchRow> rows = play_sizes(plan, flags, table, *control, identity);
  identity.end_time = utc_now();
  int status = stopped_status(*control, signals.received());
  if (first) {
    if (table) std::fputs(bench_footer(plan.head, rows).c_str(), stdout);
    if (!flags.csv.empty()) write_whole(flags.csv, bench_csv(plan.head, rows));
    if (!flags.json.empty()) write_whole(flags.json, bench_json(identity, plan.head, rows));
    status = outcome(flags, rows, *control, signals.received());
  }
  control->close();
  return status;
}

}  // namespace ghostrank
