#include "emulator/result/figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "profiles/median.h"

namespace ghostrank {
namespace {

constexpr std::size_t kSamplesForP99 = 100;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double middle = mean(values);
  double squares = 0;
  for (const double v : values) squares += (v - middle) * (v - middle);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// Rank of the 99th percentile, from 1 on.
std::size_t rank_of_p99(std::size_t values) {
  return static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(values)));
}

double p99(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[rank_of_p99(values.size()) - 1];
}

// How far p99 lies above the lower end of its 95 % interval: a few steps decide p99, and these may
// be due to chance, such as which message went first at a NIC.
double p99_by_chance(std::vector<double> values) {
  const double wide = 1.96 * std::sqrt(0.0099 * static_cast<double>(values.size()));
  const std::size_t rank = rank_of_p99(values.size());
  std::sort(values.begin(), values.end());
  const double might_be = values[rank - 1 - std::min(rank - 1, static_cast<std::size_t>(wide))];
  return error_of(values[rank - 1], might_be);
}

std::vector<double> without(std::span<const double> played, std::span<const double> late) {
  std::vector<double> values(played.begin(), played.end());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= late[i];
  return values;
}

std::vector<double> all_of(const std::vector<IterationReport>& iterations,
                           double IterationReport::*part) {
  std::vector<double> values;
  for (const IterationReport& i : iterations) values.push_back(i.*part);
  return values;
}

}  // namespace

double error_of(double played, double without_lateness) {
  if (played == without_lateness) return 0;
  if (without_lateness <= 0) return kErrorUnknown;
  return std::min(kErrorUnknown, std::abs(played - without_lateness) / without_lateness);
}

double error_of(const Statistic& statistic, std::span<const double> played,
                std::span<const double> late) {
  if (played.empty()) return 0;
  return error_of(statistic({played.begin(), played.end()}), statistic(without(played, late)));
}

double median_error(std::span<const double> seconds, std::span<const double> late_seconds) {
  return error_of(median<double>, seconds, late_seconds);
}

std::vector<Figure> step_figures(const std::vector<IterationReport>& iterations) {
  const std::vector<double> played = all_of(iterations, &IterationReport::seconds),
                            late = all_of(iterations, &IterationReport::late_seconds);
  if (played.empty()) return {};
  const std::vector<double> clean = without(played, late);
  std::vector<Figure> figures{{"step_time.median", median_error(played, late)},
                              {"step_time.mean", error_of(mean, played, late)}};
  // The error of a spread is relative to the step, because the spread of steady steps is 0.
  const double middle = mean(clean);
  if (played.size() >= 2)
    figures.push_back(
        {"step_time.cv",
         middle <= 0 ? kErrorUnknown : std::abs(deviation(played) - deviation(clean)) / middle});
  if (played.size() >= kSamplesForP99)
    figures.push_back({"step_time.p99", error_of(p99, played, late) + p99_by_chance(clean)});
  // Time that the machine added to a step is in one part or the other, because ranks waited for it.
  const double added = std::abs(median(played) - median(clean));
  for (const auto& [name, part] :
       {std::pair("exposed_comm", &IterationReport::exposed_comm_seconds),
        std::pair("bubble", &IterationReport::bubble_seconds)}) {
    const double value = median(all_of(iterations, part));
    if (value > 0) figures.push_back({name, error_of(value, value - std::min(added, value))});
  }
  return figures;
}

std::vector<Figure> job_figures(const JobReport& job) {
  JobReport clean = job;
  for (auto* const iterations : {&clean.iterations, &clean.alone})
    for (IterationReport& i : *iterations) i.seconds -= i.late_seconds;
  const std::string of = "jobs." + job.name + ".";
  std::vector<Figure> figures;
  const auto add = [&](const char* what, double played, double without_lateness) {
    if (played > 0) figures.push_back({of + what, error_of(played, without_lateness)});
  };
  add("alone.mean", mean_seconds(job.alone), mean_seconds(clean.alone));
  add("step_time.mean", mean_seconds(job.iterations), mean_seconds(clean.iterations));
  add("slowdown", job.slowdown(), clean.slowdown());
  return figures;
}

bool is_valid(std::span<const Figure> figures, std::string_view name) {
  return std::none_of(figures.begin(), figures.end(),
                      [&](const Figure& f) { return f.name == name && !f.valid(); });
}

double call_error(double own, std::span<const Figure> figures) {
  const auto step = std::find_if(figures.begin(), figures.end(),
                                 [](const Figure& f) { return f.name == "step_time.median"; });
  return step == figures.end() || step->valid() ? own : std::max(own, step->error);
}

}  // namespace ghostrank
