#include "profiles/fsdp_mesh.h"

#include <algorithm>
#include <functional>

#include "profiles/error.h"
#include "profiles/rank_grid.h"

namespace ghostrank {
namespace {

// The nearest legal values below and above, as "4 or 8".
std::string nearest_legal(int wanted, int most, const std::function<bool(int)>& legal) {
  int below = std::min(wanted - 1, most), above = wanted + 1;
  while (below > 0 && !legal(below)) --below;
  while (above <= most && !legal(above)) ++above;
  std::string text = below > 0 ? std::to_string(below) : "";
  if (above <= most) text += (text.empty() ? "" : " or ") + std::to_string(above);
  return text.empty() ? "none" : text;
}

void check_tensor_parallel(const JobSpec& spec) {
  const int tp = spec.parallel.tp, gpus = spec.cluster.gpus();
  if (tp == 1) return;
  const auto& shape = spec.model->transformer;
  if (!shape || spec.model->architecture != "llama" || shape->experts.count > 0 ||
      shape->is_latent() || shape->bias)
    throw Error(spec.place("parallel.tp") + ": tensor parallelism with framework torchtitan is " +
                "available for dense models of architecture llama without biases only; use "
                "parallel.tp=1, or framework: megatron");
  const auto legal = [&](int value) {
    const auto n = static_cast<std::uint64_t>(value);
    return gpus % value == 0 && shape->heads % n == 0 && shape->kv_heads % n == 0 &&
           shape->ffn % n == 0 && shape->sequence % n == 0 && shape->vocabulary % n == 0;
  };
  if (!legal(tp))
    throw Error(spec.place("parallel.tp") + ": parallel.tp is " + std::to_string(tp) +
                " but must divide the " + std::to_string(gpus) +
                " GPUs and the model's heads, kv_heads, ffn, sequence and vocabulary; use "
                "parallel.tp=" +
                nearest_legal(tp, static_cast<int>(shape->kv_heads), legal));
}

void check_data_ranks(const JobSpec& spec, int ranks) {
  if (spec.parallel.dp != 0 && spec.parallel.dp != ranks) {
    std::string legal = std::to_string(ranks);
    const int gpus = spec.parallel.dp * spec.parallel.tp, per_node = spec.cluster.gpus_per_node;
    if (gpus % per_node == 0) legal += ", or cluster.nodes=" + std::to_string(gpus / per_node);
    throw Error(spec.place("parallel.dp") + ": parallel.dp is " + std::to_string(spec.parallel.dp) +
                " but the cluster has " + std::to_string(spec.cluster.gpus()) + " GPUs" +
                (spec.parallel.tp > 1 ? " with tp " + std::to_string(spec.parallel.tp) : "") +
                "; use parallel.dp=" + legal);
  }
  const int replicas = spec.parallel.dp_replicate;
  const auto fits = [&](int value) { return value == 1 || (ranks % value == 0 && value < ranks); };
  if (!fits(replicas))
    throw Error(spec.place("parallel.dp_replicate") + ": parallel.dp_replicate is " +
                std::to_string(replicas) + " but must divide the " + std::to_string(ranks) +
                " data-parallel ranks into groups of two or more; use parallel.dp_replicate=" +
                nearest_legal(replicas, ranks, fits));
}

std::uint16_t add(Workload& workload, const char* name, std::vector<std::vector<Rank>> groups) {
  const auto kind = static_cast<std::uint16_t>(workload.group_names.size());
  workload.group_names.emplace_back(name);
  for (std::vector<Rank>& members : groups) workload.groups.push_back({kind, std::move(members)});
  return kind;
}

}  // namespace

FsdpMesh fsdp_mesh(const JobSpec& spec, Workload& workload) {
  check_tensor_parallel(spec);
  const int ranks = spec.cluster.gpus() / spec.parallel.tp;
  check_data_ranks(spec, ranks);
  FsdpMesh mesh;
  mesh.tp = spec.parallel.tp;
  mesh.replicate = spec.parallel.dp_replicate;
  mesh.shard = ranks / mesh.replicate;
  const RankGrid grid({{"tp", mesh.tp}, {"shard", mesh.shard}, {"replicate", mesh.replicate}});
  workload.ranks = grid.ranks();
  workload.role_of.assign(static_cast<std::size_t>(workload.ranks), 0);
  if (ranks > 1) mesh.data_group = add(workload, "dp", grid.groups({"shard", "replicate"}));
  mesh.shard_group = mesh.data_group;
  if (mesh.replicate > 1) {
    mesh.shard_group = add(workload, "dp_shard", grid.groups({"shard"}));
    mesh.replica_group = add(workload, "dp_replicate", grid.groups({"replicate"}));
  }
  if (mesh.tp > 1) mesh.tensor_group = add(workload, "tp", grid.groups({"tp"}));
  workload.samples_per_iteration = static_cast<double>(spec.parallel.micro_batch) * ranks;
  workload.flops_per_iteration = 3 * spec.model->forward_flops() * workload.samples_per_iteration;
  return mesh;
}

bool is_replicated(const JobSpec& spec, const Tensor& tensor) {
  return spec.parallel.tp == 1 || tensor.numel <= spec.model->transformer->hidden;
}

}  // namespace ghostrank
