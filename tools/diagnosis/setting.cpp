#include "tools/diagnosis/setting.h"

#include <algorithm>
#include <limits>

#include "profiles/input/quantity.h"
#include "profiles/job/framing.h"

namespace ghostrank {
namespace {

double rate_at(const SortedJson& config, const std::string& path) {
  return parse_rate(config_text(config, path)).value_or(0);
}

int small_at(const SortedJson& config, const std::string& path) {
  constexpr double kMost = std::numeric_limits<int>::max() / 4;
  return static_cast<int>(std::clamp(config_number(config, path), 0.0, kMost));
}

}  // namespace

const SortedJson& config_at(const SortedJson& config, const std::string& path) {
  static const SortedJson nothing;
  const SortedJson* at = &config;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    if (!at->is_object()) return nothing;
    const auto found = at->find(path.substr(from, dot - from));
    if (found == at->end()) return nothing;
    at = &*found;
    from = dot + 1;
  }
  return *at;
}

std::string config_text(const SortedJson& config, const std::string& path) {
  const SortedJson& value = config_at(config, path);
  return value.is_string() ? value.get<std::string>() : "";
}

double config_number(const SortedJson& config, const std::string& path) {
  const SortedJson& value = config_at(config, path);
  return value.is_number() ? value.get<double>() : 0;
}

bool config_truth(const SortedJson& config, const std::string& path) {
  const SortedJson& value = config_at(config, path);
  return value.is_boolean() && value.get<bool>();
}

NicSetting nic_setting(const StoredRun& run) {
  const SortedJson& config = run.config;
  NicSetting setting;
  setting.nics_per_node = run.result.nics_per_node;
  const int nodes = small_at(config, "cluster.nodes");
  setting.rank_nodes = nodes + small_at(config, "cluster.storage_nodes");
  const bool dedicated = config_text(config, "servers.placement") != "colocated";
  setting.all_nodes = setting.rank_nodes + (dedicated ? small_at(config, "servers.count") : 0);
  if (nodes == 0) setting.rank_nodes = setting.all_nodes = std::numeric_limits<int>::max();
  if (config_text(config, "cluster.nic.rates").empty()) {
    setting.bps = rate_at(config, "cluster.nic.rate");
    setting.helper_bps = rate_at(config, "servers.nic.rate");
  }
  setting.framing =
      framing_named(config_text(config, "fabric.framing"),
                    static_cast<std::uint32_t>(small_at(config, "fabric.packets.mtu")),
                    path_mtu_of(config_text(config, "fabric.path_mtu")));
  return setting;
}

}  // namespace ghostrank
