// ghostrank adapt: a controller chooses what share of every tensor is sent in every step, on a
// network whose rates change (cluster.nic.rates), and is compared with shares that stay as they
// are. Every step is played in virtual time, from the time of the file on at which it begins.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "profiles/error.h"
#include "profiles/job/nic_rates.h"
#include "profiles/planners/plan.h"
#include "tools/adapt/ratio_controller.h"
#include "tools/quiet_play.h"
#include "tools/report/output_files.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs.h"
#include "tools/watch/patience.h"

namespace ghostrank {
namespace {

constexpr double kLate = 1.05;  // times the budget: such a step was late

struct AdaptFlags {
  JobFlags job;
  std::string rates, csv;
  double budget_ms = 0;
  int steps = 200;
  RatioLimits limits{0, 1e-4, 0.5};
  std::vector<double> fixed{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1};
};

struct StepPlayed {
  double seconds = 0;
  double calls = 0;  // seconds of all exchanges
  bool late = false;
};

// The job's steady step at any time of the file of rates.
class Steps {
 public:
  explicit Steps(const AdaptFlags& flags) : flags_(flags), job_(load(flags)) {
    if (!job_.spec.cluster.nic_rates)
      throw Error(job_.spec.source_of("cluster.nic.rate") +
                  ": the rates of the NICs do not change; give --rates FILE, or the job "
                  "cluster.nic.rates");
    rates_ = *job_.spec.cluster.nic_rates;
    workload_ = plan_workload(job_.spec);
    step_ = compressed_step(job_.spec, workload_);
  }

  const CompressedStep& step() const { return step_; }
  const JobSpec& spec() const { return job_.spec; }

  // Bits per second of the slowest NIC.
  double slowest_rate(double seconds) const {
    double ps_per_byte = 0;
    const ClusterSpec& cluster = job_.spec.cluster;
    for (Nic nic(0); nic < Nic(cluster.all_nodes() * cluster.nics_per_node); ++nic)
      if (const RateCurve* curve = rates_.of(nic))
        ps_per_byte = std::max(ps_per_byte, curve->ps_per_byte(picos(seconds)));
    return 8e12 / ps_per_byte;
  }

  StepPlayed play(double seconds, const std::vector<double>& ratios) {
    job_.spec.cluster.nic_rates = std::make_shared<const NicRates>(rates_.from(picos(seconds)));
    const Workload workload = with_ratios(job_.spec, workload_, step_, ratios);
    const Result result = play_quietly(job_, workload);
    StepPlayed played;
    played.seconds = result.iterations.back().seconds;
    played.late = played.seconds > step_.compute + kLate * flags_.limits.budget;
    const bool sums = job_.spec.compression->method->exchange == Func::all_reduce;
    for (const CollectiveReport& row : result.collectives)
      if (row.op == (sums ? "allreduce" : "all_gather") && row.algbw_GBps > 0)
        played.calls += row.bytes / (row.algbw_GBps * 1e9);
    return played;
  }

  // Steps with one ratio that end before any rate changes are alike.
  StepPlayed play_fixed(double seconds, double ratio) {
    const Picoseconds change = rates_.next_change(picos(seconds));
    const auto ends_before = [&](const StepPlayed& played) {
      return picos(seconds + played.seconds) <= change;
    };
    const auto known = fixed_.find({change, ratio});
    if (known != fixed_.end() && ends_before(known->second)) return known->second;
    const StepPlayed played = play(seconds, std::vector<double>(step_.calls.size(), ratio));
    if (ends_before(played)) fixed_[{change, ratio}] = played;
    return played;
  }

 private:
  static Picoseconds picos(double seconds) { return std::llround(seconds * 1e12); }

  static LoadedJob load(const AdaptFlags& flags) {
    std::vector<std::string> overrides = flags.job.overrides;
    if (flags.job.seed) overrides.push_back("run.seed=" + std::to_string(*flags.job.seed));
    if (!flags.rates.empty()) overrides.push_back("cluster.nic.rates=" + flags.rates);
    for (const char* setting :
         {"fabric.kind=virtual", "run.warmup=0", "run.iterations=1", "run.jitter=0"})
      overrides.emplace_back(setting);
    return load_job(flags.job.path, overrides);
  }

  const AdaptFlags& flags_;
  LoadedJob job_;
  NicRates rates_{{}, {}};
  Workload workload_;
  CompressedStep step_;
  std::map<std::pair<Picoseconds, double>, StepPlayed> fixed_;  // by the next change
};

// What became of all steps by one way of choosing ratios.
struct Course {
  std::string name;
  double seconds = 0;
  double sent = 0;        // mean share of the gradients that a step sends
  double least_sent = 1;  // of a step
  int late = 0;           // steps
};

double share_of(const CompressedStep& step, const std::vector<double>& ratios) {
  double sent = 0, all = 0;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const auto elements = static_cast<double>(step.calls[i].elements);
    sent += elements * ratios[i];
    all += elements;
  }
  return sent / all;
}

struct StepRow {
  int step = 0;
  double at = 0, rate = 0, share = 0, seconds = 0;
};

void count(Course& course, const AdaptFlags& flags, double share, const StepPlayed& played) {
  course.seconds += played.seconds;
  course.sent += share / flags.steps;
  course.least_sent = std::min(course.least_sent, share);
  if (played.late) ++course.late;
}

Course adaptive(const AdaptFlags& flags, Steps& steps, std::vector<StepRow>& rows) {
  Course course{"adaptive"};
  const CompressedStep& step = steps.step();
  RatioController controller(step, flags.limits, [&](const CompressedCall& call, double ratio) {
    return payload_at(steps.spec(), call, ratio);
  });
  for (int i = 0; i < flags.steps; ++i) {
    const double at = course.seconds;
    const std::vector<double> ratios = controller.ratios();
    const StepPlayed played = steps.play(at, ratios);
    controller.measured(played.calls);
    const double share = share_of(step, ratios);
    count(course, flags, share, played);
    rows.push_back({i, at, steps.slowest_rate(at), share, played.seconds});
  }
  return course;
}

Course fixed(const AdaptFlags& flags, Steps& steps, double ratio) {
  Course course{significant(ratio)};
  for (int i = 0; i < flags.steps; ++i)
    count(course, flags, ratio, steps.play_fixed(course.seconds, ratio));
  return course;
}

std::string table_of(const AdaptFlags& flags, const std::vector<Course>& courses) {
  Table table{{{"ratio"},
               {"late steps", Align::right},
               {"sent", Align::right},
               {"least sent", Align::right},
               {"time", Align::right},
               {"sent/s", Align::right}},
              {}};
  for (const Course& course : courses)
    table.rows.push_back({course.name, humane_percent(1.0 * course.late / flags.steps),
                          humane_percent(course.sent), humane_percent(course.least_sent),
                          humane_seconds(course.seconds),
                          significant(course.sent * flags.steps / course.seconds, 3)});
  return std::to_string(flags.steps) + " steps, which may take " +
         humane_seconds(flags.limits.budget) +
         " longer than their compute; late: 5 % more than that. Sent: share of the gradients, mean "
         "over steps; sent/s: whole gradients a second\n\n" +
         render(table);
}

std::string csv_of(const std::vector<StepRow>& rows) {
  std::string text = "step,at_s,rate_bps,sent_share,step_time_s\n";
  for (const StepRow& row : rows)
    text += std::to_string(row.step) + "," + significant(row.at, 9) + "," +
            significant(row.rate, 9) + "," + significant(row.share, 6) + "," +
            significant(row.seconds, 9) + "\n";
  return text;
}

}  // namespace

int verb_adapt(const Argv& argv) {
  AdaptFlags flags;
  CLI::App app(
      "Let a controller choose what share of every tensor is sent in every step, on a network "
      "whose rate changes, and compare it with fixed shares. In virtual time.",
      "ghostrank adapt");
  add_job_flags(app, flags.job);
  app.add_option("--rates", flags.rates, "in place of the job's cluster.nic.rates")
      ->type_name("FILE");
  app.add_option("--budget-ms", flags.budget_ms, "how much longer than its compute a step may take")
      ->required()
      ->check(CLI::Range(0.001, 1e6))
      ->type_name("MS");
  app.add_option("--steps", flags.steps, "default 200")
      ->check(between(3, 1'000'000))
      ->type_name("N");
  app.add_option("--least", flags.limits.least, "ratio that is always sent; default 0.0001")
      ->check(CLI::Range(1e-9, 1.0))
      ->type_name("SHARE");
  app.add_option("--most", flags.limits.most, "and that is never exceeded; default 0.5")
      ->check(CLI::Range(1e-9, 1.0))
      ->type_name("SHARE");
  app.add_option("--fixed", flags.fixed, "ratios to compare with")
      ->delimiter(',')
      ->check(CLI::Range(1e-9, 1.0))
      ->type_name("R,R");
  app.add_option("--csv", flags.csv, "the controller's steps, a row each; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  if (!parse(app, argv)) return 0;
  if (flags.limits.least >= flags.limits.most)
    throw Error("--least: " + significant(flags.limits.least) +
                " leaves no choice; give less than --most (" + significant(flags.limits.most) +
                ")");
  check_outputs({{"--csv", flags.csv}});
  flags.limits.budget = flags.budget_ms * 1e-3;
  Steps steps(flags);  // a mistake in the job comes to light here
  std::vector<StepRow> rows;
  Patience playing("playing steps");
  std::vector<Course> courses{adaptive(flags, steps, rows)};
  for (const double ratio : flags.fixed) courses.push_back(fixed(flags, steps, ratio));
  if (!flags.csv.empty()) write_whole(flags.csv, csv_of(rows));
  if (flags.csv != "-") std::fputs(table_of(flags, courses).c_str(), stdout);
  return 0;
}

}  // namespace ghostrank
