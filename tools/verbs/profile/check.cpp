// See capture.h.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "profiles/capture/merge.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/load/locate.h"
#include "profiles/median.h"
#include "profiles/planners/ddp.h"
#include "profiles/planners/plan.h"
#include "tools/quiet_play.h"
#include "tools/report/files/output_files.h"
#include "tools/report/files/temporary_file.h"
#include "tools/report/json/json.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs/profile/capture.h"
#include "tools/watch/outcome.h"

namespace ghostrank {
namespace {

Model captured_model(const std::string& path) {
  YamlValue name;
  name.kind = YamlValue::Kind::scalar;
  name.text = path.find('/') == std::string::npos ? "./" + path : path;
  name.mark.source = std::make_shared<Source>(Source{"profile", "argument", false});
  Model model = make_model(resolve_profile(name, kModelProfile, ""));
  if (!model.capture || model.recorded.empty())
    throw Error(path + ": there are no recorded steps in it; write it by 'profile capture'");
  return model;
}

// The captured run as a job of so many ranks.
std::vector<std::string> job_lines(const std::string& path, const Model& model, int ranks) {
  const CaptureFacts& facts = *model.capture;
  char cluster[200];
  std::snprintf(cluster, sizeof cluster,
                "cluster: {nodes: %d, gpus_per_node: 1, nics_per_node: 1, "
                "nic: {rate: %s, latency_us: %.6g}}",
                ranks, rate_text(facts.nic_rate_bps).c_str(),
                static_cast<double>(facts.nic_latency) / static_cast<double>(kPicosPerMicro));
  const std::string name = library_of(facts.backend);
  const std::string library = name.empty() ? "" : "collectives: {library: " + name + "}";
  return {
      "schema: ghostrank/job/1", "model: " + Json(std::filesystem::absolute(path).string()).dump(),
      cluster, "parallel: {framework: ddp}", library, "fabric: {kind: virtual}",
      // DDP's first two steps differ; then every recorded step is played twice.
      "run: {warmup: 2, iterations: " + std::to_string(2 * model.recorded.front().size()) + "}"};
}

// Compares the buckets that PyTorch's rule gives with those formed. The first bucket holds 1 MiB;
// since PyTorch's pull request 121640 (2024) it holds as much as the others where the script gives
// bucket_cap_mb.
bool rule_gives_buckets(const Model& model) {
  const auto cap = static_cast<std::uint64_t>(model.capture->bucket_cap_mb * (1 << 20));
  const std::uint32_t bytes = bytes_of(model.dtype.value_or(DataType::float32));
  const auto given_with = [&](std::uint64_t first) {
    std::vector<std::size_t> tensors;
    for (const Bucket& bucket : ddp_buckets(model, bytes, first, cap))
      tensors.push_back(bucket.tensors);
    return tensors == model.buckets;
  };
  return given_with(1 << 20) || given_with(cap);
}

struct Row {
  const char* what;
  double real, emulated;
  double error() const { return emulated / real - 1; }
};

std::vector<Row> rows_of(const Model& model, const Result& result) {
  std::vector<double> real, emulated;
  for (const std::int64_t one : model.capture->held_out)
    real.push_back(static_cast<double>(one) * 1e-9);
  for (const IterationReport& one : result.iterations) emulated.push_back(one.seconds);
  return {{"step, median", quantile(real, 0.5), quantile(emulated, 0.5)},
          {"step, 10th of 100", quantile(real, 0.1), quantile(emulated, 0.1)},
          {"step, 90th of 100", quantile(real, 0.9), quantile(emulated, 0.9)}};
}

std::string signed_percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.2f %%", 100 * share);
  return text;
}

std::string text_of(const Model& model, const std::vector<Row>& rows) {
  Table table{
      {{""}, {"real run", Align::right}, {"emulated", Align::right}, {"difference", Align::right}},
      {}};
  for (const Row& row : rows)
    table.rows.push_back({row.what, humane_seconds(row.real), humane_seconds(row.emulated),
                          signed_percent(row.error())});
  return model.name + ": " + std::to_string(model.recorded.front().size()) + " recorded steps of " +
         std::to_string(model.capture->ranks) + " ranks against " +
         std::to_string(model.capture->held_out.size()) + " that the capture did not use\n\n" +
         render(table) + "\nbuckets      " + std::to_string(model.buckets.size()) +
         (rule_gives_buckets(model) ? ", as PyTorch's rule gives them\n"
                                    : ", others than PyTorch's rule gives\n");
}

std::string json_of(const Model& model, const std::vector<Row>& rows) {
  Json out{{"schema", "ghostrank/profile-check/1"},
           {"ranks", model.capture->ranks},
           {"recorded_steps", model.recorded.front().size()},
           {"held_out_steps", model.capture->held_out.size()},
           {"buckets", model.buckets},
           {"buckets_by_rule", rule_gives_buckets(model)},
           {"rows", Json::array()}};
  for (const Row& row : rows)
    out["rows"].push_back({{"what", row.what},
                           {"measured", row.real},
                           {"emulated", row.emulated},
                           {"error", row.error()}});
  return out.dump(2) + "\n";
}

}  // namespace

int profile_check(const Argv& argv) {
  std::string file, json;
  std::optional<double> within;
  bool print = false;
  CLI::App app(
      "Play a captured profile in virtual time, and say how far its steps are from those of the "
      "same real run that it does not use.",
      "ghostrank profile check");
  app.add_option("profile", file, "as 'profile capture' wrote it")->required()->type_name("FILE");
  app.add_option("--within", within, "exit 1 if the medians of steps differ by a larger share")
      ->check(real_between(0, 1e6))
      ->type_name("SHARE");
  app.add_option("--json", json, "the same as JSON; - is stdout")->type_name("FILE|-");
  app.add_flag("--print-job", print, "print the job that would be played; do not play it");
  app.footer(
      "Examples:\n"
      "  ghostrank profile check run.profile.yaml --within 0.03\n"
      "  ghostrank profile check run.profile.yaml --print-job > run.yaml; ghostrank run run.yaml");
  if (!parse(app, argv)) return 0;
  refuse_beside(app, "--print-job", {"--json", "--within"});
  const Model model = captured_model(file);
  if (print) {
    const auto lines = job_lines(file, model, model.capture->ranks);
    for (const std::string& line : lines) std::printf("%s\n", line.c_str());
    return 0;
  }
  if (model.capture->held_out.empty())
    throw Error(file +
                ": there are no steps of a real run to compare it with; --print-job prints "
                "the job, for 'ghostrank run'");
  check_outputs({{"--json", json}});
  // With a fake group the calls of the one rank ended at once, as those of a rank alone do.
  const bool alone = model.capture->backend == kFakeGroup;
  const TemporaryFile job_file(job_lines(file, model, alone ? 1 : model.capture->ranks));
  const LoadedJob job = load_job(job_file.path(), {});
  const Result result = play_quietly(job, plan_workload(job.spec));
  const auto rows = rows_of(model, result);
  if (!json.empty()) write_whole(json, json_of(model, rows));
  if (json != "-") std::fputs(text_of(model, rows).c_str(), stdout);
  if (within && !(std::abs(rows.front().error()) <= *within))
    return failed("the medians of steps differ by " + signed_percent(rows.front().error()));
  return 0;
}

}  // namespace ghostrank
