// Step times beside those of real clusters: every run is planned and played in virtual time, and
// the engine's own step is compared with what was measured.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <unistd.h>

#include "emulator/control/control.h"
#include "emulator/engine.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "tests/fidelity/cases.h"
#include "tests/fidelity/measured_steps.h"

namespace ghostrank::fidelity {
namespace {

constexpr std::size_t kWorst = 10;
// Most mean distance of a table.
const std::map<std::string, double> kMost{{"A100, several nodes", .08},
                                          {"A100, one node, composed", .07},
                                          {"Korthikanti table 5", .03},
                                          {"Megatron-core H100", .05},
                                          {"SC'21 table 1", .03}};
// Most GPUs of runs played message by message without --long, not as flows: kMostInParts of those
// whose overlapped calls are cut in parts.
constexpr int kMostGpus = 3072, kMostInParts = 2304;

struct Played {
  IterationReport step;
  double least = 0;  // closed form: the least time of compute with bubble, NICs and latencies
  int micro_batch = 0, interleave = 0;
};

struct Compared {
  const MeasuredStep* run;
  Played played;
  double error() const { return played.step.seconds / run->seconds - 1; }
};

class JobFile {
 public:
  explicit JobFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("ghostrank-step-time-" + std::to_string(getpid()) + ".yaml")) {
    std::ofstream(path_) << text;
  }
  ~JobFile() { std::filesystem::remove(path_); }
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  const std::filesystem::path path_;
};

// Returns nullopt if the settings were only tried, not published, and do not fit the model.
std::optional<LoadedJob> loaded(const std::string& text, bool tried, Workload& workload) {
  try {
    LoadedJob job = load_job(JobFile(text).path(), {});
    workload = plan_workload(job.spec);
    return job;
  } catch (const Error&) {
    if (!tried) throw;
    return std::nullopt;
  }
}

std::vector<int> or_this(const std::vector<int>& several, int one) {
  return several.empty() ? std::vector<int>{one} : several;
}

Played play_fastest(const MeasuredStep& run) {
  const bool tried = !run.micro_batches.empty() || !run.interleaves.empty();
  Played best;
  std::optional<LoadedJob> chosen;
  Workload chosen_workload;
  for (const int micro : or_this(run.micro_batches, run.micro_batch))
    for (const int chunks : or_this(run.interleaves, run.interleave)) {
      const std::string text = run.job(micro, chunks);
      if (text.empty()) continue;
      Workload workload;
      std::optional<LoadedJob> job = loaded(text, tried, workload);
      if (!job) continue;
      const double least = plan_traffic(job->spec, workload).step_seconds_at_least;
      if (chosen && least >= best.least) continue;
      best.least = least;
      best.micro_batch = micro;
      best.interleave = chunks;
      chosen = std::move(job);
      chosen_workload = std::move(workload);
    }
  if (!chosen) throw std::runtime_error(run.table + ", " + run.name + ": no setting fits");
  Observer nobody;
  const auto control = Control::meet(World{});
  const Result result = run_job(*chosen, chosen_workload, *control, {}, nobody);
  best.step = result.iterations.at(0);
  return best;
}

std::string share(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * part / whole);
  return text;
}
std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 1 ? "%.4f" : "%.2f", value);
  return text;
}

Row heading() {
  return {"table", "run",        "basis",   "measured s", "predicted s",
          "error", "at least s", "compute", "exposed",    "bubble"};
}
Row line_of(const Compared& c) {
  const IterationReport& step = c.played.step;
  std::string name = c.run->name;
  if (!c.run->micro_batches.empty())
    name += ", micro-batch " + std::to_string(c.played.micro_batch);
  if (c.played.interleave > 1) name += ", interleave " + std::to_string(c.played.interleave);
  if (c.run->network == "flow") name += ", as flows";
  return {c.run->table,
          name,
          c.run->basis == Basis::fitted ? "fitted" : "predicted",
          seconds(c.run->seconds),
          seconds(step.seconds),
          percent(c.error()),
          seconds(c.played.least),
          share(step.compute_seconds, step.seconds),
          share(step.exposed_comm_seconds, step.seconds),
          share(step.bubble_seconds, step.seconds)};
}

double mean_distance(const std::vector<Compared>& all) {
  double sum = 0;
  for (const Compared& c : all) sum += std::abs(c.error());
  return sum / static_cast<double>(all.size());
}

Row summary_of(const std::string& name, const std::vector<Compared>& all) {
  std::vector<double> distances;
  double sum = 0;
  for (const Compared& c : all) {
    distances.push_back(std::abs(c.error()));
    sum += c.error();
  }
  std::sort(distances.begin(), distances.end());
  const auto at90 = static_cast<std::size_t>(.9 * static_cast<double>(distances.size() - 1) + .5);
  return {name,
          std::to_string(all.size()),
          percent(mean_distance(all)),
          percent(distances[at90]),
          percent(distances.back()),
          percent(sum / static_cast<double>(all.size()))};
}

std::vector<Compared> compare(const std::vector<MeasuredStep>& runs) {
  std::vector<Compared> out;
  for (const MeasuredStep& run : runs) {
    out.push_back({&run, play_fastest(run)});
    std::fputs(report::markdown_line(line_of(out.back())).c_str(), stderr);
  }
  return out;
}

}  // namespace

Findings compare_step_times(const Options& options) {
  const char* named = std::getenv("GHOSTRANK_TEST_DATA");
  const std::string folder =
      std::string(named ? named : GHOSTRANK_SOURCE_DIR "/../shared/data") + "/measured_a100";
  auto multi = measured_multi_node(folder), single = measured_single_node(folder);
  const bool whole = options.ranks == 0 && !options.quick && options.row.empty();
  if (whole && multi.empty())
    throw std::runtime_error("there are no measured iterations in " + folder +
                             "; name the folder above by GHOSTRANK_TEST_DATA, or play published "
                             "runs only, with --ranks N");
  auto published = published_steps();
  if (const int fits = options.ranks > 0 ? options.ranks : options.quick ? 600 : 0; fits > 0)
    std::erase_if(published, [&](const MeasuredStep& run) { return run.gpus > fits; });
  for (MeasuredStep& run : published) {
    const bool in_parts = run.parallel.find("tp_comm_overlap: true") != std::string::npos;
    if (run.gpus > (in_parts ? kMostInParts : kMostGpus) && !options.longer) run.network = "flow";
  }
  for (auto* runs : {&multi, &single, &published})
    std::erase_if(*runs, [&](const MeasuredStep& run) {
      return (run.table + " | " + run.name).find(options.row) == std::string::npos;
    });

  std::map<std::string, std::vector<Compared>> tables;
  std::vector<Compared> far;
  std::vector<Row> rows{heading()};
  const std::vector<MeasuredStep>* const sources[] = {&multi, &single, &published};
  for (const auto* runs : sources)
    for (const Compared& c : compare(*runs)) {
      tables[c.run->table].push_back(c);
      if (runs != &single) rows.push_back(line_of(c));
      if (runs == &single) far.push_back(c);
    }
  std::sort(far.begin(), far.end(), [](const Compared& a, const Compared& b) {
    return std::abs(a.error()) > std::abs(b.error());
  });
  far.resize(std::min(far.size(), kWorst));
  for (const Compared& c : far) rows.push_back(line_of(c));

  std::vector<Row> summaries{
      {"table", "runs", "mean distance", "90th percentile", "farthest", "mean error"}};
  Findings out;
  for (const auto& [name, all] : tables) {
    summaries.push_back(summary_of(name, all));
    const auto most = kMost.find(name);
    if (whole && most != kMost.end() && mean_distance(all) > most->second)
      out.misses.push_back(name + ": a mean distance of " + percent(mean_distance(all)) +
                           ", at most " + percent(most->second) + " is wanted");
  }
  out.markdown = markdown_table(summaries) + "\n" + markdown_table(rows);
  return out;
}

}  // namespace ghostrank::fidelity
