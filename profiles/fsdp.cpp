#include "profiles/fsdp.h"

#include <algorithm>
#include <optional>

#include "profiles/compute.h"
#include "profiles/data_parallel.h"
#include "profiles/error.h"
#include "profiles/model.h"
#include "profiles/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kCompute = 0, kComm = 1, kReplicate = 2;
constexpr std::uint16_t kShards = kDataParallel + 1, kReplicas = kDataParallel + 2;  // hybrid

class FsdpWriter {
 public:
  explicit FsdpWriter(const JobSpec& spec)
      : spec_(spec),
        model_(*spec.model),
        times_(step_times(spec)),
        hybrid_(spec.parallel.dp_replicate > 1),
        ranks_(static_cast<std::uint64_t>(spec.cluster.gpus() / spec.parallel.dp_replicate)),
        shard_group_(hybrid_ ? kShards : kDataParallel),
        gathered_(2 * model_.layers.size()),
        out_(hybrid_ ? std::vector<std::string>{"compute", "comm", "replicate"}
                     : std::vector<std::string>{"compute", "comm"}) {
    for (const Layer& layer : model_.layers) {
      std::uint64_t shard = 0;
      for (const Tensor& tensor : layer.parameters) shard += (tensor.numel + ranks_ - 1) / ranks_;
      shards_.push_back(shard);
    }
  }

  Program write() {
    const std::size_t units = model_.layers.size();
    for (std::size_t u = 0; u < units; ++u) {
      fetch(u, units);
      out_.compute(kCompute, "forward " + model_.layers[u].name, times_.layers[u].forward);
    }
    for (std::size_t u = units; u-- > 0;) {
      fetch(2 * units - 1 - u, 2 * units);
      out_.compute(kCompute, "backward " + model_.layers[u].name, times_.layers[u].backward);
      scatter(u);
    }
    out_.after(kCompute, kComm);
    if (hybrid_) out_.after(kCompute, kReplicate);
    finish();
    return out_.take();
  }

 private:
  // ---- Parameters: units in the order of their use, forward, then backward ----

  std::size_t unit_of(std::size_t use) const {
    return use < shards_.size() ? use : 2 * shards_.size() - 1 - use;
  }

  bool keeps(std::size_t unit) const {
    const std::string& policy = spec_.parallel.reshard;
    const bool last = unit + 1 == shards_.size();
    return policy == "never" ||
           (policy == "default" && spec_.parallel.framework == "torchtitan" && last);
  }

  // Layers without parameters, of a measured model, are no units.
  void gather(std::size_t use) {
    const std::size_t unit = unit_of(use);
    if (shards_[unit] == 0 || (use >= shards_.size() && keeps(unit))) return;
    out_.after(kComm, kCompute);
    out_.collective(kComm, "gather " + model_.layers[unit].name, Func::all_gather, shard_group_,
                    spec_.precision.parameters, shards_[unit]);
    gathered_[use] = out_.mark(kComm, kCompute);
  }

  // Before a use: its parameters are here, and those of the next uses are on their way, though not
  // beyond `end`.
  void fetch(std::size_t use, std::size_t end) {
    while (launched_ <= use) gather(launched_++);
    if (gathered_[use]) out_.wait(*gathered_[use]);
    const std::size_t ahead = use + 1 + static_cast<std::size_t>(spec_.parallel.prefetch);
    while (launched_ < std::min(ahead, end)) gather(launched_++);
  }

  // ---- Gradients ----

  void scatter(std::size_t unit) {
    if (shards_[unit] == 0) return;
    out_.after(kComm, kCompute);
    out_.collective(kComm, "scatter " + model_.layers[unit].name, Func::reduce_scatter,
                    shard_group_, spec_.precision.gradients, shards_[unit]);
    if (!hybrid_) return;
    out_.after(kReplicate, kComm);
    out_.collective(kReplicate, "replicas of " + model_.layers[unit].name, Func::all_reduce,
                    kReplicas, spec_.precision.gradients, shards_[unit]);
  }

  // The norm of every tensor's gradient; the optimizer on the shards; the loss, averaged and
  // largest.
  void finish() {
    out_.after(kComm, kCompute);
    out_.collective(kComm, "gradient norm", Func::all_reduce, shard_group_, DataType::float32,
                    model_.tensors());
    out_.after(kCompute, kComm);
    out_.compute(kCompute, "optimizer", times_.optimizer / static_cast<Picoseconds>(ranks_));
    out_.after(kComm, kCompute);
    for (int i = 0; i < 2; ++i)
      out_.collective(kComm, "loss", Func::all_reduce, kDataParallel, DataType::float32, 1);
  }

  const JobSpec& spec_;
  const Model& model_;
  const StepTimes times_;
  const bool hybrid_;
  const std::uint64_t ranks_;  // that share a model
  const std::uint16_t shard_group_;
  std::vector<std::uint64_t> shards_;                          // elements of each unit at a rank
  std::vector<std::optional<ProgramBuilder::Mark>> gathered_;  // by use
  std::size_t launched_ = 0;                                   // uses whose gather was considered
  ProgramBuilder out_;
};

void check_replicas(const JobSpec& spec) {
  const int replicas = spec.parallel.dp_replicate, gpus = spec.cluster.gpus();
  const auto fits = [&](int value) { return value == 1 || (gpus % value == 0 && value < gpus); };
  if (fits(replicas)) return;
  int below = std::max(1, std::min(replicas, gpus) - 1), above = replicas + 1;
  while (!fits(below)) --below;
  while (above < gpus && !fits(above)) ++above;
  throw Error(spec.place("parallel.dp_replicate") + ": parallel.dp_replicate is " +
              std::to_string(replicas) + " but must divide the " + std::to_string(gpus) +
              " GPUs into groups of two or more; use parallel.dp_replicate=" +
              std::to_string(below) + (above < gpus ? " or " + std::to_string(above) : ""));
}

// Shards lie on neighbouring ranks.
void add_hybrid_groups(const JobSpec& spec, Workload& workload) {
  const int replicas = spec.parallel.dp_replicate, ranks = workload.ranks / replicas;
  workload.group_names.insert(workload.group_names.end(), {"dp_shard", "dp_replicate"});
  for (int replica = 0; replica < replicas; ++replica) {
    Group group{kShards, {}};
    for (int i = 0; i < ranks; ++i) group.members.push_back(replica * ranks + i);
    workload.groups.push_back(std::move(group));
  }
  for (int i = 0; i < ranks; ++i) {
    Group group{kReplicas, {}};
    for (int replica = 0; replica < replicas; ++replica)
      group.members.push_back(replica * ranks + i);
    workload.groups.push_back(std::move(group));
  }
}

}  // namespace

Workload plan_fsdp(const JobSpec& spec) {
  check_data_parallel(spec);
  check_replicas(spec);
  Workload workload = data_parallel_workload(spec, {"fsdp", {FsdpWriter(spec).write()}});
  if (spec.parallel.dp_replicate > 1) add_hybrid_groups(spec, workload);
  return workload;
}

}  // namespace ghostrank
