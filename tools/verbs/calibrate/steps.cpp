// ghostrank calibrate --from: a device profile from step times of a user's own runs.
#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "tools/calibrate/device_fit.h"
#include "tools/report/files/output_files.h"
#include "tools/report/json/json.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs/calibrate/calibrate.h"
#include "tools/watch/patience.h"

namespace ghostrank {
namespace {

std::string off(double predicted, double measured) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * (predicted / measured - 1));
  return text;
}

std::string table_of(const std::vector<MeasuredRun>& runs, const DeviceFit& found) {
  Table table{{{"line", Align::right},
               {"run"},
               {"measured", Align::right},
               {"fitted", Align::right},
               {"off", Align::right},
               {"held out", Align::right},
               {"off", Align::right}},
              {}};
  const StepFit& fit = found.fit;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    std::string lines;
    for (const int line : runs[r].lines) lines += (lines.empty() ? "" : ",") + std::to_string(line);
    table.rows.push_back({lines, runs[r].name, humane_seconds(runs[r].seconds),
                          humane_seconds(fit.predicted[r]), off(fit.predicted[r], runs[r].seconds),
                          humane_seconds(fit.held_out[r]), off(fit.held_out[r], runs[r].seconds)});
  }
  std::string text = render(table) + "\n";
  for (std::size_t n = 0; n < found.numbers.size(); ++n)
    text += found.numbers[n].name + " " + significant(fit.values[n], 3) + " (without one run " +
            significant(fit.least[n], 3) + " to " + significant(fit.most[n], 3) + ")\n";
  return text + "held out, steps are off by " + humane_percent(fit.mean_error) +
         " on average, by " + humane_percent(fit.worst) + " at most\n";
}

std::string json_of(const std::vector<MeasuredRun>& runs, const DeviceFit& found) {
  const StepFit& fit = found.fit;
  Json fitted = Json::object(), rows = Json::array();
  for (std::size_t n = 0; n < found.numbers.size(); ++n)
    fitted[found.numbers[n].name] = {
        {"value", fit.values[n]}, {"least", fit.least[n]}, {"most", fit.most[n]}};
  for (std::size_t r = 0; r < runs.size(); ++r)
    rows.push_back({{"lines", runs[r].lines},
                    {"run", runs[r].name},
                    {"seconds", runs[r].seconds},
                    {"fitted_seconds", fit.predicted[r]},
                    {"held_out_seconds", fit.held_out[r]}});
  const Json json{{"schema", "ghostrank/calibration/1"},
                  {"device", found.device.name},
                  {"fitted", std::move(fitted)},
                  {"held_out_error", {{"mean", fit.mean_error}, {"most", fit.worst}}},
                  {"notes", found.notes},
                  {"runs", std::move(rows)}};
  return json.dump(2) + "\n";
}

}  // namespace

int calibrate_steps(const Argv& argv) {
  std::string from, job, output, json;
  std::vector<std::string> overrides;
  bool estimate = false;
  CLI::App app(
      "Make a device profile from step times that you measured: a CSV file with a line for every "
      "run and the columns seconds, job (its job file), plan (as in tp=8 pp=4), or any key of a "
      "job. Each run is compared with a fit to the others.",
      "ghostrank calibrate steps");
  app.add_option("--from", from, "the runs, some twenty of them, as CSV")
      ->required()
      ->type_name("FILE");
  app.add_option("--job", job, "the job of lines that name none")->type_name("JOB.yaml");
  app.add_option("-s,--set", overrides, "override any key of every job; repeatable")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--estimate", estimate,
               "do not play the runs, which takes minutes for clusters of thousands: steps are "
               "estimated without calls in each other's way");
  app.add_option("-o,--output", output, "where the profile goes; default stdout")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--json", json, "runs, fitted numbers and errors as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.footer(
      "Examples:\n"
      "  ghostrank calibrate --from runs.csv -o our-h100.yaml\n"
      "  ghostrank calibrate --from runs.csv --job gpt.yaml -s device=h100-sxm -o our-h100.yaml\n"
      "  ghostrank run gpt.yaml -s device=./our-h100.yaml");
  if (!parse(app, argv)) return 0;
  std::vector<MeasuredRun> runs = read_measured_runs(from, job, overrides);
  check_outputs({{"--output", output}, {"--json", json}});
  Patience fitting("fitting to " + humane_count(static_cast<double>(runs.size()), "run"));
  const DeviceFit found = fit_device(runs, !estimate);
  fitting.end();
  const std::string yaml =
      device_yaml(found, std::filesystem::path(from).filename().string(), runs.size());
  const int unwritten = write_each(std::vector<TextFile>{
      {json, [&] { return json_of(runs, found); }}, {output, [&] { return yaml; }}});
  // What is on stdout can be piped: the profile, or else the table.
  const bool to_stdout = output.empty() && json != "-";
  if (to_stdout) std::fputs(yaml.c_str(), stdout);
  if (json != "-") std::fputs(table_of(runs, found).c_str(), to_stdout ? stderr : stdout);
  for (const std::string& note : found.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  return unwritten;
}

}  // namespace ghostrank
