// ghostrank adapt: a controller chooses what share of every tensor is sent in every step, on a
// network whose rate changes, and is compared with shares that stay as they are. Every step is
// played in virtual time, at the rate that NICs have when it begins.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/input/yaml.h"
#include "profiles/planners/plan.h"
#include "tools/adapt/ratio_controller.h"
#include "tools/report/output_files.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs.h"
#include "tools/quiet_play.h"
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

// From `from` seconds on, every NIC has this rate.
struct RateChange {
  double from = 0;
  double bits_per_second = 0;
};

std::vector<RateChange> read_rates(const std::string& path) {
  std::istringstream in(read_text(path));
  std::vector<RateChange> rates;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || (number == 1 && line.starts_with("seconds"))) continue;
    const std::size_t comma = line.find(',');
    const std::optional<double> from = parse_number(line.substr(0, comma));
    const double rate =
        comma == std::string::npos ? 0 : parse_rate(line.substr(comma + 1)).value_or(0);
    const double after = rates.empty() ? 0 : rates.back().from;
    if (!from || rate <= 0 || (rates.empty() ? *from != 0 : *from <= after))
      throw Error(path + ":" + std::to_string(number) + ": " + quote(line) +
                  " is no row; write SECONDS,RATE upwards from 0, as 12.5,10Gbps");
    rates.push_back({*from, rate});
  }
  if (rates.empty()) throw Error(path + ": there is no row; write SECONDS,RATE, as 0,10Gbps");
  return rates;
}

double rate_at(const std::vector<RateChange>& rates, double seconds) {
  const auto after = std::upper_bound(rates.begin(), rates.end(), seconds,
                                      [](double t, const RateChange& r) { return t < r.from; });
  return after[-1].bits_per_second;
}

struct StepPlayed {
  double seconds = 0;
  double calls = 0;  // seconds of all exchanges
  bool late = false;
};

// A job at each of its rates, and its steps; the same step is played once.
class Steps {
 public:
  explicit Steps(const AdaptFlags& flags) : flags_(flags) {}

  const CompressedStep& step(double rate) { return at(rate).step; }
  const JobSpec& spec(double rate) { return at(rate).job.spec; }

  StepPlayed play(double rate, const std::vector<double>& ratios) {
    AtRate& place = at(rate);
    const Workload workload = with_ratios(place.job.spec, place.workload, place.step, ratios);
    const Result result = play_quietly(place.job, workload);
    StepPlayed played;
    played.seconds = result.iterations.back().seconds;
    played.late = played.seconds > place.step.compute + kLate * flags_.limits.budget;
    const bool sums = place.job.spec.compression->method->exchange == Func::all_reduce;
    for (const CollectiveReport& row : result.collectives)
      if (row.op == (sums ? "allreduce" : "all_gather") && row.algbw_GBps > 0)
        played.calls += row.bytes / (row.algbw_GBps * 1e9);
    return played;
  }
  StepPlayed play_fixed(double rate, double ratio) {
    const auto known = fixed_.find({rate, ratio});
    if (known != fixed_.end()) return known->second;
    return fixed_[{rate, ratio}] = play(rate, std::vector<double>(step(rate).calls.size(), ratio));
  }

 private:
  struct AtRate {
    LoadedJob job;
    Workload workload;
    CompressedStep step;
  };
  AtRate& at(double rate) {
    const auto known = rates_.find(rate);
    if (known != rates_.end()) return known->second;
    std::vector<std::string> overrides = flags_.job.overrides;
    if (flags_.job.seed) overrides.push_back("run.seed=" + std::to_string(*flags_.job.seed));
    overrides.push_back("cluster.nic.rate=" + rate_text(rate));
    for (const char* setting :
         {"fabric.kind=virtual", "run.warmup=0", "run.iterations=1", "run.jitter=0"})
      overrides.emplace_back(setting);
    AtRate place{load_job(flags_.job.path, overrides), {}, {}};
    place.workload = plan_workload(place.job.spec);
    place.step = compressed_step(place.job.spec, place.workload);
    return rates_.emplace(rate, std::move(place)).first->second;
  }

  const AdaptFlags& flags_;
  std::map<double, AtRate> rates_;
  std::map<std::pair<double, double>, StepPlayed> fixed_;
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

Course adaptive(const AdaptFlags& flags, const std::vector<RateChange>& rates, Steps& steps,
                std::vector<StepRow>& rows) {
  Course course{"adaptive"};
  const double first = rates.front().bits_per_second;
  const CompressedStep step = steps.step(first);  // but for rates, all are alike
  const JobSpec& spec = steps.spec(first);
  RatioController controller(step, flags.limits, [&](const CompressedCall& call, double ratio) {
    return payload_at(spec, call, ratio);
  });
  for (int i = 0; i < flags.steps; ++i) {
    const double rate = rate_at(rates, course.seconds), at = course.seconds;
    const std::vector<double> ratios = controller.ratios();
    const StepPlayed played = steps.play(rate, ratios);
    controller.measured(played.calls);
    const double share = share_of(step, ratios);
    count(course, flags, share, played);
    rows.push_back({i, at, rate, share, played.seconds});
  }
  return course;
}

Course fixed(const AdaptFlags& flags, const std::vector<RateChange>& rates, Steps& steps,
             double ratio) {
  Course course{significant(ratio)};
  for (int i = 0; i < flags.steps; ++i)
    count(course, flags, ratio, steps.play_fixed(rate_at(rates, course.seconds), ratio));
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
  app.add_option("--rates", flags.rates,
                 "CSV of the NICs' rates in time: SECONDS,RATE, as 12.5,10Gbps; the last one stays")
      ->required()
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
  if (flags.job.path == "-") throw Error("adapt reads its job for every rate; give it a file");
  check_outputs({{"--csv", flags.csv}});
  flags.limits.budget = flags.budget_ms * 1e-3;
  const std::vector<RateChange> rates = read_rates(flags.rates);
  Steps steps(flags);
  steps.step(rates.front().bits_per_second);  // a mistake in the job comes to light here
  std::vector<StepRow> rows;
  Patience playing("playing steps");
  std::vector<Course> courses{adaptive(flags, rates, steps, rows)};
  for (const double ratio : flags.fixed) courses.push_back(fixed(flags, rates, steps, ratio));
  if (!flags.csv.empty()) write_whole(flags.csv, csv_of(rows));
  if (flags.csv != "-") std::fputs(table_of(flags, courses).c_str(), stdout);
  return 0;
}

}  // namespace ghostrank
