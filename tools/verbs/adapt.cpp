// ghostrank adapt: a controller chooses what share of every tensor is sent in every step, on a
// network whose rates change (cluster.nic.rates), and is compared with fixed shares. Every step is
// played in virtual time, with the file's rates from the time at which the step begins.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "emulator/step_trial.h"
#include "profiles/error.h"
#include "profiles/job/nic_rates.h"
#include "profiles/load/config.h"
#include "profiles/planners/plan.h"
#include "tools/report/files/output_files.h"
#include "tools/report/json/json.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs.h"
#include "tools/watch/patience.h"

namespace ghostrank {
namespace {

constexpr double kLate = 1.05;  // times the budget: such a step was late

struct AdaptFlags {
  JobFlags job;
  std::string rates, csv, json;
  bool quiet = false, print_config = false;
  std::string budget_ms, least, most;  // as given, in place of the job's keys; empty: the job's
  int steps = 200;
  std::vector<double> fixed{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1};
};

LoadedJob load(const AdaptFlags& flags) {
  check_seed(flags.job.seed, flags.job.overrides);
  std::vector<std::string> overrides = flags.job.overrides;
  for (const char* key : {"run.iterations", "run.warmup"})
    if (gives(overrides, key))
      throw Error(std::string("-s ") + key +
                  " means nothing to adapt, which plays --steps; give "
                  "that, or leave it out");
  const auto set = [&](const char* key, const std::string& value) {
    if (!value.empty()) overrides.push_back(std::string(key) + "=" + value);
  };
  if (flags.job.seed) set("run.seed", std::to_string(*flags.job.seed));
  set("cluster.nic.rates", flags.rates);
  set("compression.budget_ms", flags.budget_ms);
  set("compression.least_ratio", flags.least);
  set("compression.most_ratio", flags.most);
  set("fabric.kind", "virtual");
  LoadedJob job = load_job(flags.job.path, overrides);
  if (!job.spec.compression)
    throw Error("the job compresses nothing; give it compression.method=topk or randomk");
  if (!job.spec.compression->adapts)
    throw Error(job.spec.source_of("compression.budget_ms") +
                ": no budget; give --budget-ms MS, or the job compression.budget_ms");
  if (!job.spec.cluster.nic_rates)
    throw Error(job.spec.source_of("cluster.nic.rate") +
                ": the rates of the NICs do not change; give --rates FILE, or the job "
                "cluster.nic.rates");
  if (job.spec.run.jitter > 0)
    throw Error(job.spec.source_of("run.jitter") +
                ": adapt compares ratios without jitter; leave it out, or give -s run.jitter=0");
  if (job.spec.events)
    throw Error(job.spec.source_of("events") +
                ": events: adapt compares ratios without events; leave them out, or give -s "
                "'events=[]'");
  return job;
}

// What the courses share: the job, its plan and its steady step.
struct Steps {
  explicit Steps(const AdaptFlags& flags)
      : job(load(flags)), workload(plan_workload(job.spec)), trial(job, workload) {}

  const NicRates& rates() const { return *job.spec.cluster.nic_rates; }
  const RatioLimits& limits() const { return *job.spec.compression->adapts; }

  LoadedJob job;
  Workload workload;
  StepTrial trial;
};

Picoseconds picos(double seconds) { return std::llround(seconds * 1e12); }

// Bits per second of the slowest NIC.
double slowest_rate(const Steps& steps, double seconds) {
  double ps_per_byte = 0;
  const ClusterSpec& cluster = steps.job.spec.cluster;
  for (Nic nic(0); nic < Nic(cluster.all_nodes() * cluster.nics_per_node); ++nic)
    if (const RateCurve* curve = steps.rates().of(nic))
      ps_per_byte = std::max(ps_per_byte, curve->ps_per_byte(picos(seconds)));
  return 8e12 / ps_per_byte;
}

// Steps with one ratio. Steps that end before the next change of a rate take equally long.
class FixedSteps {
 public:
  FixedSteps(Steps& steps, double ratio)
      : steps_(steps), ratios_(steps.trial.step().calls.size(), ratio) {}

  // Of the gradients that a step sends: more than the ratio where tensors are small, because at
  // least one element of each is sent.
  double share() const { return share_of(steps_.job.spec, steps_.trial.step(), ratios_); }

  // Seconds of a step that begins then.
  double play(double at) {
    const Picoseconds change = steps_.rates().next_change(picos(at));
    const auto ends_before = [&](double seconds) { return picos(at + seconds) <= change; };
    const auto known = known_.find(change);
    if (known != known_.end() && ends_before(known->second)) return known->second;
    const double seconds = steps_.trial.play(at, ratios_).seconds;
    if (ends_before(seconds)) known_[change] = seconds;
    return seconds;
  }

 private:
  Steps& steps_;
  std::vector<double> ratios_;
  std::map<Picoseconds, double> known_;  // by the next change
};

// The result of all steps with one way of choosing ratios.
struct Course {
  std::string name;
  double seconds = 0;
  double sent = 0;        // mean share of the gradients that a step sends
  double least_sent = 1;  // of a step
  int late = 0;           // steps
};

struct StepRow {
  int step = 0;
  double at = 0, rate = 0, share = 0, seconds = 0;
};

void count(Course& course, const AdaptFlags& flags, const Steps& steps, double share,
           double seconds) {
  course.seconds += seconds;
  course.sent += share / flags.steps;
  course.least_sent = std::min(course.least_sent, share);
  if (seconds > steps.trial.step().compute + kLate * steps.limits().budget) ++course.late;
}

Course adaptive(const AdaptFlags& flags, Steps& steps, std::vector<StepRow>& rows) {
  Course course{"adaptive"};
  AdaptiveSteps controlled(steps.trial);
  for (int i = 0; i < flags.steps; ++i) {
    const AdaptiveSteps::Step step = controlled.next();
    const double share = share_of(steps.job.spec, steps.trial.step(), step.ratios);
    count(course, flags, steps, share, step.seconds);
    rows.push_back({i, step.at, slowest_rate(steps, step.at), share, step.seconds});
  }
  return course;
}

Course fixed(const AdaptFlags& flags, Steps& steps, double ratio) {
  Course course{significant(ratio)};
  FixedSteps alike(steps, ratio);
  for (int i = 0; i < flags.steps; ++i)
    count(course, flags, steps, alike.share(), alike.play(course.seconds));
  return course;
}

std::string table_of(const AdaptFlags& flags, double budget, const std::vector<Course>& courses) {
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
  return std::to_string(flags.steps) + " steps, which may take " + humane_seconds(budget) +
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

// Schema ghostrank/adapt/1. Seconds of the emulated cluster.
std::string json_of(const AdaptFlags& flags, const Steps& steps, const std::vector<Course>& courses,
                    const std::vector<StepRow>& rows) {
  Json json{{"schema", "ghostrank/adapt/1"},
            {"version", GHOSTRANK_VERSION},
            {"config", Json::parse(steps.job.config_json)},
            {"budget_s", steps.limits().budget},
            {"steps", flags.steps},
            {"ratios", Json::array()},
            {"controller", Json::array()}};
  for (const Course& course : courses)
    json["ratios"].push_back({{"ratio", course.name},
                              {"late_steps", course.late},
                              {"sent_share_mean", course.sent},
                              {"sent_share_least", course.least_sent},
                              {"seconds", course.seconds}});
  for (const StepRow& row : rows)
    json["controller"].push_back({{"step", row.step},
                                  {"at_s", row.at},
                                  {"rate_bps", row.rate},
                                  {"sent_share", row.share},
                                  {"step_time_s", row.seconds}});
  return dump(json);
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
  app.add_option("--budget-ms", flags.budget_ms,
                 "how much longer than its compute a step may take; default compression.budget_ms")
      ->check(real_between(0.001, 1e6))
      ->type_name("MS");
  app.add_option("--steps", flags.steps, "default 200")
      ->check(between(3, 1'000'000))
      ->type_name("N");
  app.add_option("--least", flags.least,
                 "ratio that is always sent; default compression.least_ratio")
      ->check(real_between(1e-9, 1))
      ->type_name("SHARE");
  app.add_option("--most", flags.most, "and that is never exceeded; default compression.most_ratio")
      ->check(real_between(1e-9, 1))
      ->type_name("SHARE");
  app.add_option("--fixed", flags.fixed, "ratios to compare with")
      ->delimiter(',')
      ->check(real_between(1e-9, 1))
      ->type_name("R,R");
  const auto file = [&](const char* name, std::string& path, const char* what) {
    app.add_option(name, path, what)->type_name("FILE|-")->group("Output");
  };
  file("--json", flags.json, "the table and the controller's steps as JSON; - is stdout");
  file("--csv", flags.csv, "the controller's steps, a row each; - is stdout");
  app.add_flag("-q,--quiet", flags.quiet, "no progress, no table")->group("Output");
  app.add_flag("--print-config", flags.print_config,
               "print every key, its value and origin; do not play");
  if (!parse(app, argv)) return 0;
  refuse_beside(app, "--print-config", {"--json", "--csv"});
  if (flags.print_config) {
    print_config(load(flags));
    return 0;
  }
  check_outputs({{"--json", flags.json}, {"--csv", flags.csv}});
  Steps steps(flags);  // a mistake in the job comes to light here
  std::vector<StepRow> rows;
  Patience playing("playing steps", !flags.quiet);
  std::vector<Course> courses{adaptive(flags, steps, rows)};
  for (const double ratio : flags.fixed) courses.push_back(fixed(flags, steps, ratio));
  const int unwritten = write_each(
      std::vector<TextFile>{{flags.csv, [&] { return csv_of(rows); }},
                            {flags.json, [&] { return json_of(flags, steps, courses, rows); }}});
  if (!flags.quiet && flags.csv != "-" && flags.json != "-")
    std::fputs(table_of(flags, steps.limits().budget, courses).c_str(), stdout);
  return unwritten;
}

}  // namespace ghostrank
