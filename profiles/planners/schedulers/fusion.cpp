#include "profiles/planners/schedulers/fusion.h"

#include <algorithm>

#include "profiles/error.h"

namespace ghostrank {
namespace {

struct FittedCost {
  AllReduceCostModel network;
  int ranks;
  AllReduceCost cost;
};
// Seconds, and seconds per byte, as the sources of MG-WFBP and SPD-KFAC have them.
constexpr FittedCost kFitted[] = {{AllReduceCostModel::ethernet_10g, 4, {4.204e-5, 2.059e-10}},
                                  {AllReduceCostModel::ethernet_10g, 8, {5.230e-4, 8.571e-10}},
                                  {AllReduceCostModel::ethernet_10g, 16, {9.081e-4, 7.396e-10}},
                                  {AllReduceCostModel::ethernet_10g, 32, {1.348e-3, 8.643e-10}},
                                  {AllReduceCostModel::ethernet_10g, 64, {7.043e-3, 9.643e-10}},
                                  {AllReduceCostModel::rdma_100g, 2, {2.555e-6, 9.838e-11}},
                                  {AllReduceCostModel::rdma_100g, 4, {4.204e-5, 2.059e-10}},
                                  {AllReduceCostModel::rdma_100g, 8, {9.754e-5, 3.057e-10}},
                                  {AllReduceCostModel::rdma_100g, 16, {7.075e-4, 4.059e-10}},
                                  {AllReduceCostModel::rdma_100g, 32, {4.063e-4, 4.907e-10}},
                                  {AllReduceCostModel::rdma_100g, 64, {8.063e-4, 5.888e-10}},
                                  {AllReduceCostModel::spdkfac, 64, {9.29e-4, 1.4335e-9 / 4}}};

// Every step of a ring takes as long as its slowest hop.
AllReduceCost ring_cost(const ClusterSpec& cluster) {
  const int ranks = cluster.gpus();
  const bool inside = cluster.nodes == 1;
  const Picoseconds latency = inside ? cluster.intra_node.latency
                                     : std::max(cluster.intra_node.latency, cluster.nic.latency);
  double rate = cluster.intra_node.rate_bps;  // 0: unlimited
  if (!inside && cluster.nic.rate_bps > 0) {
    const double out =
        cluster.nic.rate_bps * std::min(cluster.nics_per_node, cluster.gpus_per_node);
    rate = rate > 0 ? std::min(rate, out) : out;
  }
  const double steps = 2.0 * (ranks - 1);
  return {steps * seconds(latency), rate > 0 ? steps / ranks * 8 / rate : 0};
}

}  // namespace

std::vector<FusedGroup> fuse_by_size(std::span<const Module> modules, std::uint32_t element_bytes,
                                     double threshold) {
  std::vector<FusedGroup> groups;
  for (std::size_t m = 0; m < modules.size(); ++m) {
    const std::uint64_t open = groups.empty() ? 0 : groups.back().numel;
    const bool full = static_cast<double>(open + modules[m].numel) * element_bytes >= threshold;
    if (groups.empty() || (open > 0 && modules[m].numel > 0 && full)) groups.push_back({m, m, 0});
    groups.back().end = m + 1;
    groups.back().numel += modules[m].numel;
  }
  return groups;
}

std::vector<FusedGroup> fuse_by_count(std::span<const Module> modules, std::size_t count) {
  std::size_t held = 0;  // modules with parameters in the open group
  std::vector<FusedGroup> groups;
  for (std::size_t m = 0; m < modules.size(); ++m) {
    const bool counts = modules[m].numel > 0;
    if (groups.empty() || (counts && held == count)) {
      groups.push_back({m, m, 0});
      held = 0;
    }
    held += counts ? 1 : 0;
    groups.back().end = m + 1;
    groups.back().numel += modules[m].numel;
  }
  return groups;
}

std::vector<FusedGroup> fuse_by_waiting(std::span<const Module> modules, Picoseconds time) {
  std::vector<FusedGroup> groups;  // the last one first
  Picoseconds now = 0, opened = 0;
  for (std::size_t m = modules.size(); m-- > 0;) {
    now += modules[m].backward;
    const bool closes =
        !groups.empty() && groups.back().numel > 0 && modules[m].numel > 0 && now - opened > time;
    if (groups.empty() || closes) groups.push_back({m, m + 1, 0});
    if (groups.back().numel == 0) opened = now;
    groups.back().first = m;
    groups.back().numel += modules[m].numel;
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

AllReduceCost assumed_cost(const JobSpec& spec) {
  const AllReduceCostModel model = spec.parallel.allreduce_cost;
  if (model == AllReduceCostModel::cluster) return ring_cost(spec.cluster);
  std::string known;
  for (const FittedCost& row : kFitted) {
    if (row.network != model) continue;
    if (row.ranks == spec.cluster.gpus()) return row.cost;
    known += (known.empty() ? "" : ", ") + std::to_string(row.ranks);
  }
  throw Error(spec.source_of("parallel.allreduce_cost") + ": costs were fitted for " + known +
              " ranks and the cluster has " + std::to_string(spec.cluster.gpus()) +
              "; use parallel.allreduce_cost=cluster");
}

std::vector<FusedGroup> merge_calls(std::span<const ReadyTensor> tensors,
                                    std::uint32_t element_bytes, const AllReduceCost& cost,
                                    std::uint64_t tiny) {
  std::vector<FusedGroup> groups;  // the last one first
  double ready = 0, link_free = 0;
  bool joins = false;  // the tensor's call takes those of the open group with it
  for (std::size_t t = tensors.size(); t-- > 0;) {
    ready += seconds(tensors[t].backward);
    if (!joins) groups.push_back({t, t + 1, 0});
    FusedGroup& open = groups.back();
    open.first = t;
    open.numel += tensors[t].numel;
    if (t == 0) break;
    const double next = ready + seconds(tensors[t - 1].backward);
    const double start = std::max(link_free, ready);
    const double end = start + cost.seconds(static_cast<double>(open.numel) * element_bytes);
    joins = (next < end && (start > next || next - start < cost.alpha)) || open.numel < tiny;
    if (!joins) link_free = end;
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

}  // namespace ghostrank
