#include "tools/report/page/job_words.h"

#include <algorithm>
#include <map>

#include "profiles/input/quantity.h"
#include "tools/compare/comparison.h"
#include "tools/diagnosis/setting.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

constexpr std::size_t kLongest = 1000;

// What a key names, by a text or by a mapping with a name.
std::string named_at(const SortedJson& config, const std::string& key) {
  const std::string text = config_text(config, key);
  return text.empty() ? config_text(config, key + ".name") : text;
}

std::string plan_text(const SortedJson& config) {
  const std::string framework = config_text(config, "parallel.framework");
  std::string sizes;
  for (const char* axis : {"tp", "pp", "cp", "ep", "dp"})
    if (const double size = config_number(config, std::string("parallel.") + axis); size > 1)
      sizes += (sizes.empty() ? "" : ", ") + std::string(axis) + " " + humane_count(size);
  return framework + (framework.empty() || sizes.empty() ? "" : " (" + sizes + ")");
}

std::string training_text(const SortedJson& config) {
  const bool traced = !config_text(config, "trace").empty();
  std::string text = named_at(config, "model");
  const auto add = [&](const std::string& before, const std::string& what) {
    if (!what.empty()) text += (text.empty() ? "" : before) + what;
  };
  if (traced) add(", ", "a trace");
  if (!traced) add(" under ", plan_text(config));
  if (!traced && config_text(config, "precision.parameters") == "fp8") add(", ", "fp8 products");
  if (const std::string type = config_text(config, "precision.gradients"); !type.empty() && !traced)
    add(", ", type + " gradients");
  if (const std::string device = named_at(config, "device"); !device.empty())
    add(" ", "on " + device);
  return text;
}

std::string jobs_text(const SortedJson& jobs) {
  std::string text;
  for (const SortedJson& job : jobs)
    if (const std::string name = config_text(job, "name"); !name.empty())
      text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "" : "several jobs on one fabric (" + text + ")";
}

std::string cluster_text(const StoredRun& run) {
  const SortedJson& config = run.config;
  std::string text = humane_count(run.result.ranks, "rank");
  const double nodes = config_number(config, "cluster.nodes");
  if (nodes <= 0) return text;
  text += " on " + humane_count(nodes, "emulated node");
  const double gpus = config_number(config, "cluster.gpus_per_node"),
               nics = config_number(config, "cluster.nics_per_node");
  if (gpus > 0 && nics > 0) {
    text += " (" + humane_count(gpus, "GPU") + ", " + humane_count(nics, "NIC");
    const double bps = parse_rate(config_text(config, "cluster.nic.rate")).value_or(0);
    text += (bps > 0 ? " of " + humane_bits(bps) : "") + " each)";
  }
  return text;
}

// Leaves of a tree by their dotted paths. What a list holds is one value.
void add_leaves(const SortedJson& at, const std::string& path,
                std::map<std::string, std::string>& leaves) {
  if (at.is_object() && !at.empty()) {
    for (const auto& [key, value] : at.items())
      add_leaves(value, path.empty() ? key : path + "." + key, leaves);
    return;
  }
  leaves[path] = at.is_string() ? at.get<std::string>()
                                : at.dump(-1, ' ', false, SortedJson::error_handler_t::replace);
}

std::map<std::string, std::string> leaves_of(const SortedJson& config) {
  std::map<std::string, std::string> leaves;
  if (!config.empty()) add_leaves(config, "", leaves);
  return leaves;
}

std::string cut(const std::string& value) {
  if (value.size() <= kLongest) return value;
  return value.substr(0, kLongest) + "… (" +
         humane_count(static_cast<double>(value.size()), "character") + ")";
}

}  // namespace

std::string job_sentence(const StoredRun& run) {
  const SortedJson &config = run.config, &jobs = config_at(config, "jobs");
  const bool several = jobs.is_array() && !jobs.empty();
  std::string text = several ? jobs_text(jobs) : training_text(config);
  text += (text.empty() ? "" : ": ") + cluster_text(run);
  const auto add = [&](const std::string& what) {
    if (!what.empty()) text += ", " + what;
  };
  const std::string fabric = run.stored.fabric, transport = run.stored.transport;
  if (!fabric.empty()) add("fabric " + fabric);
  if (!transport.empty() && transport != fabric) add("over " + transport);
  if (const std::string kind = config_text(config, "cluster.topology.kind"); kind != "nonblocking")
    add(kind);
  if (const std::string library = config_text(config, "collectives.library"); !library.empty())
    add("collectives of " + library);
  return text;
}

std::vector<Fact> config_facts(const SortedJson& config) {
  std::vector<Fact> facts;
  for (const auto& [path, value] : leaves_of(config)) facts.push_back({path, cut(value)});
  return facts;
}

Table config_differences(const std::vector<StoredRun>& runs) {
  Table table{{{"key"}}, {}};
  std::map<std::string, std::vector<std::string>> values;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    table.columns.push_back({short_name(runs[i].stored)});
    for (const auto& [path, value] : leaves_of(runs[i].config)) {
      std::vector<std::string>& row = values[path];
      row.resize(runs.size(), "-");
      row[i] = value;
    }
  }
  for (const auto& [path, row] : values) {
    if (std::all_of(row.begin(), row.end(), [&](const auto& v) { return v == row.front(); }))
      continue;
    std::vector<std::string> cells{path};
    for (const std::string& value : row) cells.push_back(cut(value));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace ghostrank
