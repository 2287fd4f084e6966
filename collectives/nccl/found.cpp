#include "collectives/nccl/found.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/nccl/environment.h"
#include "collectives/nccl/machine/templates.h"

namespace ghostrank {
namespace {

using Found = std::shared_ptr<const NcclGraphs>;

constexpr std::size_t kMostKept = 256;

std::vector<int> first_gpus(int count) {
  std::vector<int> gpus(count);
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

// Names a NIC by a local rank that owns it, preferably `entry`.
int name_nic(const NcclMachine& machine, std::span<const int> gpus, int nic, int entry) {
  const auto owns = [&](int local) {
    const int gpu = gpus[local];
    return nccl_own_nic(gpu, machine.nic_count(), machine.gpu_count()) == nic;
  };
  if (nic < 0 || owns(entry)) return nic < 0 ? nic : nccl_nic_beside(entry);
  for (int local = 0; local < static_cast<int>(gpus.size()); ++local)
    if (owns(local)) return nccl_nic_beside(local);
  return nic;
}

// A communicator that fills its nodes keeps NICs by number.
Found name_nics(const NcclMachine& machine, std::span<const int> gpus, const Found& found) {
  if (static_cast<int>(gpus.size()) == machine.gpu_count()) return found;
  NcclGraphs named = *found;
  for (NcclGraph* graph : {&named.ring, &named.tree})
    for (NcclGraphChannel& c : graph->channels)
      for (int* nic : {&c.first_nic, &c.last_nic})
        *nic = name_nic(machine, gpus, *nic, c.order.front());
  for (NcclHead& head : named.heads) head.nic = name_nic(machine, gpus, head.nic, head.local);
  for (std::size_t local = 0; local < named.own_nics.size(); ++local)
    for (int& nic : named.own_nics[local])
      nic = name_nic(machine, gpus, nic, static_cast<int>(local));
  return nccl_graphs(std::move(named));
}

// The graphs by GPU, for GPUs in ascending order.
Found search_once(const NcclMachine& machine, const std::vector<int>& gpus,
                  NcclSearchOptions options) {
  struct Kept {
    NcclMachine machine;
    std::vector<int> gpus;
    NcclSearchOptions options;
    Found found;
  };
  static std::mutex mutex;
  static std::vector<Kept> kept;
  // The versions differ for Ampere only.
  if (machine.compute_capability >= 90) options.version = NcclVersion::v2_30;
  const std::lock_guard lock(mutex);
  for (const Kept& one : kept)
    if (one.gpus == gpus && one.options == options && one.machine == machine) return one.found;
  Found found = name_nics(machine, gpus, nccl_search(machine, gpus, options));
  if (kept.size() == kMostKept) kept.clear();
  kept.push_back({machine, gpus, options, found});
  return found;
}

// Renumbers graphs from GPUs in ascending order to local ranks, whose order may differ.
Found by_local_rank(const std::vector<int>& gpus, const std::vector<int>& ascending,
                    const Found& found) {
  if (gpus == ascending) return found;
  std::vector<int> local;
  for (const int gpu : ascending)
    local.push_back(static_cast<int>(std::find(gpus.begin(), gpus.end(), gpu) - gpus.begin()));
  const auto to_local = [&](int i) { return local[i]; };
  const auto rename = [&](int& nic) {
    if (is_nic_beside(nic)) nic = nccl_nic_beside(to_local(local_beside(nic)));
  };
  NcclGraphs graphs = *found;
  for (NcclGraph* graph : {&graphs.ring, &graphs.tree})
    for (NcclGraphChannel& c : graph->channels) {
      for (int& at : c.order) at = to_local(at);
      rename(c.first_nic);
      rename(c.last_nic);
    }
  for (NcclHead& head : graphs.heads) {
    head.local = to_local(head.local);
    rename(head.nic);
  }
  for (std::size_t i = 0; i < graphs.own_nics.size(); ++i) {
    std::vector<int>& own = graphs.own_nics[to_local(static_cast<int>(i))];
    own = found->own_nics[i];
    std::for_each(own.begin(), own.end(), rename);
  }
  return nccl_graphs(std::move(graphs));
}

Found for_gpus(const NcclMachine& machine, const std::vector<int>& gpus,
               const NcclSearchOptions& options) {
  std::vector<int> ascending = gpus;
  std::sort(ascending.begin(), ascending.end());
  if (std::adjacent_find(ascending.begin(), ascending.end()) != ascending.end())
    throw std::invalid_argument("two ranks of a communicator are on one GPU");
  return by_local_rank(gpus, ascending, search_once(machine, ascending, options));
}

// The GPUs of the first node that has `ranks` ranks.
std::vector<int> gpus_of(const Communicator& comm, const NcclNodes& nodes, int ranks) {
  if (comm.gpu_of.empty()) return first_gpus(ranks);
  std::vector<int> gpus;
  for (int n = 0; n < nodes.nodes(); ++n)
    if (nodes.ranks_of(n) == ranks) {
      for (int local = 0; local < ranks; ++local)
        gpus.push_back(comm.gpu_of[nodes.rank_at(n, local)]);
      break;
    }
  return gpus;
}

NcclMachine machine_of(const Communicator& comm, int ranks_per_node) {
  if (comm.machine) return *comm.machine;
  if (comm.node != "auto" && !comm.node.empty()) return nccl_template(comm.node);
  if (ranks_per_node == 1) return nccl_template("one-gpu");
  NcclMachine machine = nccl_template("hgx-h100-400g");
  if (ranks_per_node <= machine.gpu_count()) return machine;
  return nccl_machine({ranks_per_node, ranks_per_node, 50, 90});
}

// Takes the worse of both, value by value.
void align(NcclLinks& links, const NcclLinks& other) {
  links.channels = std::min(links.channels, other.channels);
  links.inside_GBps = std::min(links.inside_GBps, other.inside_GBps);
  links.between_GBps = std::min(links.between_GBps, other.between_GBps);
  links.latency_us = std::max(links.latency_us, other.latency_us);
  links.nvlink &= other.nvlink;
  links.ll128 &= other.ll128;
  links.same_channels &= other.same_channels;
}

Found with_smaller_nodes(const Communicator& comm, const NcclNodes& nodes,
                         const NcclMachine& machine, const NcclSearchOptions& options,
                         const Found& largest) {
  NcclGraphs all = *largest;
  for (int n = 0; n < nodes.nodes(); ++n) {
    const int ranks = nodes.ranks_of(n);
    if (ranks == nodes.ranks_per_node() || all.smaller.contains(ranks)) continue;
    const Found found = for_gpus(machine, gpus_of(comm, nodes, ranks), options);
    all.smaller.emplace(ranks, found);
    align(all.ring.links, found->ring.links);
    align(all.tree.links, found->tree.links);
    align(all.nvls, found->nvls);
  }
  const std::size_t channels = std::min(all.ring.links.channels, all.tree.links.channels);
  all.ring.channels.resize(channels);
  all.tree.channels.resize(channels);
  return nccl_graphs(std::move(all));
}

}  // namespace

Found nccl_graphs_of(const Communicator& comm, const NcclNodes& nodes,
                     const NcclSearchOptions& options) {
  const int largest = nodes.ranks_per_node();
  if (comm.graphs && nodes.uniform() && largest == comm.graphs->node.gpus) {
    if (nodes.nodes() > 1 && comm.graphs->node.nics == 0)
      throw std::invalid_argument(
          "the graph dump has no NICs: it is of a communicator inside one node");
    return comm.graphs;
  }
  const NcclMachine machine = machine_of(comm, largest);
  if (largest > machine.gpu_count())
    throw std::invalid_argument("node '" + machine.name + "' has " +
                                std::to_string(machine.gpu_count()) + " GPUs, the communicator " +
                                std::to_string(largest) + " ranks on one node");
  const Found found = for_gpus(machine, gpus_of(comm, nodes, largest), options);
  return nodes.uniform() ? found : with_smaller_nodes(comm, nodes, machine, options, found);
}

NcclSearchOptions nccl_search_options(const NcclSettings& settings, NcclVersion version,
                                      bool between) {
  NcclSearchOptions options;
  options.between = between;
  if (settings.cross_nic >= 0) options.cross_nic = static_cast<int>(settings.cross_nic);
  options.pxn = settings.pxn;
  options.version = version;
  return options;
}

bool nccl_like_first_gpus(const NcclMachine& machine, std::span<const int> gpus,
                          const NcclSearchOptions& options) {
  const std::vector<int> own(gpus.begin(), gpus.end());
  const std::vector<int> first = first_gpus(static_cast<int>(own.size()));
  if (own == first) return true;
  const Found a = search_once(machine, own, options), b = search_once(machine, first, options);
  return a->ring == b->ring && a->tree == b->tree && a->nvls == b->nvls && a->heads == b->heads &&
         a->own_nics == b->own_nics && a->node.tree == b->node.tree &&
         a->node.swap_odd_nodes == b->node.swap_odd_nodes &&
         a->node.nics_per_gpu == b->node.nics_per_gpu;
}

}  // namespace ghostrank
