// ghostrank calibrate ratios: how near methods of compression that estimate a threshold come to the
// ratio that they are asked for, by law of the gradients. SIDCo's stages adapt from step to step.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "collectives/compress/sparsify/achieved_ratio.h"
#include "collectives/gradients/gradient_law.h"
#include "collectives/gradients/trained_network.h"
#include "profiles/error.h"
#include "profiles/planners/gradient_laws.h"
#include "tools/report/files/output_files.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs/calibrate/calibrate.h"

namespace ghostrank {
namespace {

constexpr std::string_view kFeedback = "trained feedback";

struct RatioSetting {
  std::uint64_t elements = 200'000;
  int steps = 60;  // the second half counts: stages have adapted by then
  std::uint64_t seed = 1;
};

struct RatioRow {
  std::string law, method;
  double ratio = 0;
  double mean = 0, deviation = 0;  // of achieved over asked, over steps
};

std::vector<const Compressor*> estimators() {
  std::vector<const Compressor*> methods;
  for (const Compressor& method : compressors())
    if (method.kept && method.measure) methods.push_back(&method);
  return methods;
}

// A step's gradients; they stay until the next step.
using Source = std::function<std::span<const float>(int step)>;

Source source_of(const std::string& law, const RatioSetting& setting) {
  if (law == "trained" || law == kFeedback) {
    auto network = std::make_shared<TrainedNetwork>(setting.seed);
    return [network](int) { return network->step(); };
  }
  auto drawn = std::make_shared<std::vector<float>>(setting.elements);
  const GradientLaw parsed = parse_gradient_law(law, 1e-3, ".", "--law");
  return [drawn, parsed, seed = setting.seed](int step) -> std::span<const float> {
    parsed.draw(seed * 1'000'003 + static_cast<std::uint64_t>(step), *drawn);
    return *drawn;
  };
}

std::vector<RatioRow> measure(const std::string& law, const std::vector<double>& ratios,
                              const RatioSetting& setting) {
  const Source gradients = source_of(law, setting);
  const bool feedback = law == kFeedback;
  std::vector<RatioRow> rows;
  std::vector<AchievedRatio> tried;
  for (const double ratio : ratios)
    for (const Compressor* method : estimators()) {
      rows.push_back({law, std::string(method->name), ratio});
      tried.emplace_back(*method, ratio, feedback);
    }
  const int counted = setting.steps - setting.steps / 2;
  for (int step = 0; step < setting.steps; ++step) {
    const std::span<const float> tensor = gradients(step);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double achieved =
          tried[i].step(tensor, setting.seed + static_cast<std::uint64_t>(step));
      if (step < setting.steps - counted) continue;
      rows[i].mean += achieved / counted;
      rows[i].deviation += achieved * achieved / counted;
    }
  }
  for (RatioRow& row : rows)
    row.deviation = std::sqrt(std::max(0.0, row.deviation - row.mean * row.mean));
  return rows;
}

// A line for each law and ratio, a column for each method.
std::string table_of(const std::vector<RatioRow>& rows, const RatioSetting& setting) {
  Table table{{{"gradients"}, {"ratio", Align::right}}, {}};
  for (const Compressor* method : estimators())
    table.columns.push_back({std::string(method->name), Align::right});
  const std::size_t width = table.columns.size() - 2;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % width == 0) table.rows.push_back({rows[i].law, significant(rows[i].ratio, 3)});
    table.rows.back().push_back(significant(rows[i].mean, 3));
  }
  return "achieved over asked ratio, mean of the last " +
         std::to_string(setting.steps - setting.steps / 2) + " of " +
         std::to_string(setting.steps) + " steps\n\n" + render(table);
}

std::string csv_of(const std::vector<RatioRow>& rows) {
  std::string text = "law,method,ratio,achieved_mean,achieved_deviation\n";
  for (const RatioRow& row : rows)
    text += row.law + "," + row.method + "," + significant(row.ratio, 6) + "," +
            significant(row.mean, 6) + "," + significant(row.deviation, 6) + "\n";
  return text;
}

}  // namespace

int calibrate_ratios(const Argv& argv) {
  std::vector<std::string> laws{"laplace",    "gamma 0.5",  "gamma 2", "gaussian",
                                "pareto 0.1", "pareto 0.2", "trained", "trained feedback"};
  std::vector<double> ratios{0.1, 0.01, 0.001};
  RatioSetting setting;
  std::string csv;
  CLI::App app(
      "Measure how near methods of compression that estimate a threshold come to the ratio asked "
      "for.",
      "ghostrank calibrate ratios");
  app.add_option(
         "--law", laws,
         "gradients: laplace (exponential magnitudes), gaussian, gamma SHAPE, pareto SHAPE, "
         "measured FILE, trained (of a small network in training), trained feedback (what "
         "was not sent is added to the next ones); repeatable")
      ->type_name("LAW")
      ->allow_extra_args(false);
  app.add_option("--ratio", ratios, "ratios asked for; default 0.1,0.01,0.001")
      ->delimiter(',')
      ->check(real_between(1e-6, 1))
      ->type_name("R,R");
  app.add_option("--elements", setting.elements, "of a tensor (not of trained); default 200000")
      ->check(between(100, std::int64_t{1} << 28))
      ->type_name("N");
  app.add_option("--steps", setting.steps, "of which the second half counts; default 60")
      ->check(between(1, 100'000))
      ->type_name("N");
  app.add_option("--seed", setting.seed, "of all draws; default 1")->type_name("N");
  app.add_option("--csv", csv, "the same and the deviation over steps, as CSV; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  if (!parse(app, argv)) return 0;
  check_outputs({{"--csv", csv}});
  std::vector<RatioRow> rows;
  for (const std::string& law : laws) {
    const std::vector<RatioRow> more = measure(law, ratios, setting);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  if (!csv.empty()) write_whole(csv, csv_of(rows));
  if (csv != "-") std::fputs(table_of(rows, setting).c_str(), stdout);
  return 0;
}

}  // namespace ghostrank
