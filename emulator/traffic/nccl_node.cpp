#include "emulator/traffic/nccl_node.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>

#include "collectives/library.h"
#include "collectives/nccl/environment.h"
#include "collectives/nccl/found.h"
#include "collectives/nccl/machine/templates.h"
#include "collectives/node_links.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr double kBitsPerGB = 8e9;
constexpr double kLane = 200e9;    // of NVLink, as NCCL counts links
constexpr double kFastest = 1000;  // GB/s of a NIC without a limit: its PCIe link decides

bool plays_nccl(const CollectiveSpec& spec) {
  const auto is_nccl = [](const std::string& name) { return name.starts_with("nccl-"); };
  if (library_named(spec.library) == Library::nccl) return true;
  if (std::any_of(spec.algorithms.begin(), spec.algorithms.end(), is_nccl)) return true;
  for (const auto& [group, named] : spec.groups)
    for (const auto& [func, name] : named)
      if (is_nccl(name)) return true;
  return false;
}

NcclMachine described(const JobSpec& spec) {
  const CollectiveSpec& wanted = spec.collectives;
  if (wanted.machine) return *wanted.machine;
  if (wanted.node_template != "auto") return nccl_template(wanted.node_template);
  const ClusterSpec& cluster = spec.cluster;
  const double rate = cluster.nic.rate_bps / kBitsPerGB;
  // The search covers compute capabilities 8.0 and 9.0; other GPUs count as the nearer of them.
  NcclMachine machine = nccl_machine({cluster.gpus_per_node, cluster.nics_per_node,
                                      rate > 0 ? std::min(rate, kFastest) : kFastest,
                                      spec.device.compute_capability < 9 ? 80 : 90});
  if (!cluster.links) return machine;
  for (int a = 0; a < cluster.gpus_per_node; ++a) {
    NcclMachine::Gpu& gpu = machine.gpus[static_cast<std::size_t>(a)];
    gpu.switch_links = 0;
    for (int b = 0; b < cluster.gpus_per_node; ++b)
      if (const double bps = cluster.links->between(a, b); bps > 0)
        gpu.peer_links.emplace_back(b, static_cast<int>(std::max(1LL, std::llround(bps / kLane))));
  }
  return machine;
}

}  // namespace

NcclNodeOfJob::NcclNodeOfJob(const JobSpec& spec) : spec_(spec) {
  if (!plays_nccl(spec.collectives)) return;
  try {
    NcclMachine machine = described(spec);
    if (spec.collectives.node_cpu) machine.vendor = *spec.collectives.node_cpu;
    machine_ = std::make_shared<const NcclMachine>(std::move(machine));
  } catch (const std::invalid_argument& error) {
    throw Error(spec.source_of("collectives.library") + ": " + error.what());
  }
  if (machine_->gpu_count() < spec.cluster.gpus_per_node)
    throw Error(spec.source_of("collectives.node_template") +
                ": collectives.node_template: node '" + machine_->name + "' has " +
                std::to_string(machine_->gpu_count()) + " GPUs, cluster.gpus_per_node is " +
                std::to_string(spec.cluster.gpus_per_node) +
                "; choose another template, or auto for a node like the cluster's");
}

bool NcclNodeOfJob::like_first(const std::vector<int>& gpus, bool between) {
  const auto [at, is_new] = like_first_.try_emplace({gpus, between});
  if (!is_new) return at->second;
  const NcclSettings settings = nccl_settings(spec_.collectives.environment);
  at->second = true;
  for (const NcclVersion version : {NcclVersion::v2_28, NcclVersion::v2_30})
    at->second &=
        nccl_like_first_gpus(*machine_, gpus, nccl_search_options(settings, version, between));
  return at->second;
}

std::vector<std::int32_t> NcclNodeOfJob::gpus_that_matter(const std::vector<std::int32_t>& nodes,
                                                          const std::vector<std::int32_t>& gpus) {
  if (!machine_) return {};
  std::map<std::int32_t, std::vector<int>> on_node;
  for (std::size_t i = 0; i < nodes.size(); ++i) on_node[nodes[i]].push_back(gpus[i]);
  try {
    for (const auto& [node, own] : on_node)
      if (!std::is_sorted(own.begin(), own.end()) || !like_first(own, on_node.size() > 1))
        return gpus;
  } catch (const std::invalid_argument& error) {
    throw Error(spec_.source_of("collectives.library") + ": " + error.what());
  }
  // A send looks for the receiver's GPU on its own node.
  const auto longest = std::max_element(
      on_node.begin(), on_node.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const std::vector<int>& most = longest->second;
  const bool by_place =
      most.size() == 1 || std::all_of(on_node.begin(), on_node.end(), [&](const auto& node) {
        return std::equal(node.second.begin(), node.second.end(), most.begin());
      });
  return by_place ? std::vector<std::int32_t>{} : gpus;
}

}  // namespace ghostrank
