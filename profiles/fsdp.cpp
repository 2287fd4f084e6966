#include "profiles/fsdp.h"

#include <algorithm>
#include <optional>

#include "profiles/compute.h"
#include "profiles/data_parallel.h"
#include "profiles/error.h"
#include "profiles/fsdp_mesh.h"
#include "profiles/model.h"
#include "profiles/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kCompute = 0, kComm = 1;

class FsdpWriter {
 public:
  FsdpWriter(const JobSpec& spec, const FsdpMesh& mesh)
      : spec_(spec),
        mesh_(mesh),
        model_(*spec.model),
        times_(step_times(spec)),
        tp_(static_cast<std::uint64_t>(mesh.tp)),
        gathered_(2 * model_.layers.size()),
        out_(names_of(mesh)) {
    const auto ways = static_cast<std::uint64_t>(mesh.shard);
    for (const Layer& layer : model_.layers) {
      std::uint64_t shard = 0;
      for (const Tensor& tensor : layer.parameters) {
        const bool whole = is_replicated(spec, tensor);
        if (whole) replicated_ += tensor.numel;
        const std::uint64_t here = whole ? tensor.numel : (tensor.numel + tp_ - 1) / tp_;
        shard += (here + ways - 1) / ways;
      }
      shards_.push_back(shard);
    }
  }

  Program write() {
    const std::size_t units = model_.layers.size();
    for (std::size_t u = 0; u < units; ++u) {
      fetch(u, units);
      forward(u);
    }
    for (std::size_t u = units; u-- > 0;) {
      fetch(2 * units - 1 - u, 2 * units);
      backward(u);
      scatter(u);
    }
    out_.after(kCompute, kComm);
    if (mesh_.replicate > 1) out_.after(kCompute, replica_stream());
    finish();
    return out_.take();
  }

 private:
  static std::vector<std::string> names_of(const FsdpMesh& mesh) {
    std::vector<std::string> names{"compute", "comm"};
    if (mesh.replicate > 1) names.emplace_back("replicate");
    if (mesh.tp > 1) names.emplace_back("tp");
    return names;
  }
  static constexpr std::size_t replica_stream() { return kComm + 1; }
  std::size_t tensor_stream() const { return mesh_.replicate > 1 ? kComm + 2 : kComm + 1; }

  // ---- Layers: with tensor parallelism an attention and a feed-forward half each ----

  bool is_first(std::size_t unit) const { return unit == 0; }
  bool is_last(std::size_t unit) const { return unit + 1 == model_.layers.size(); }

  // On the hidden states of all tokens, each rank's part of the sequence in or out.
  void tensor_call(Func func) {
    if (mesh_.tp == 1) return;
    const std::uint64_t elements = static_cast<std::uint64_t>(spec_.parallel.micro_batch) *
                                   model_.transformer->sequence * model_.transformer->hidden;
    out_.after(tensor_stream(), kCompute);
    out_.collective(tensor_stream(),
                    func == Func::all_gather ? "tp all-gather" : "tp reduce-scatter", func,
                    mesh_.tensor_group, spec_.precision.parameters, elements / tp_);
    out_.after(kCompute, tensor_stream());
  }

  void compute(const char* pass, std::size_t unit, Picoseconds whole, int pieces) {
    out_.compute(kCompute, std::string(pass) + model_.layers[unit].name,
                 whole / (static_cast<Picoseconds>(tp_) * pieces));
  }

  void forward(std::size_t unit) {
    const Picoseconds time = times_.layers[unit].forward;
    const int halves = mesh_.tp > 1 && !is_first(unit) && !is_last(unit) ? 2 : 1;
    for (int half = 0; half < halves; ++half) {
      if (!is_first(unit)) tensor_call(Func::all_gather);
      compute("forward ", unit, time, halves);
      if (!is_last(unit)) tensor_call(Func::reduce_scatter);
    }
    if (is_last(unit)) parallel_loss();
  }

  void backward(std::size_t unit) {
    const Picoseconds time = times_.layers[unit].backward;
    const int halves = mesh_.tp > 1 && !is_first(unit) && !is_last(unit) ? 2 : 1;
    for (int half = 0; half < halves; ++half) {
      if (!is_last(unit)) tensor_call(Func::all_gather);
      compute("backward ", unit, time, halves);
      if (!is_first(unit)) tensor_call(Func::reduce_scatter);
    }
  }

  // Largest logit, logit of the target, sum of exponentials of every token.
  void parallel_loss() {
    if (mesh_.tp == 1) return;
    out_.after(tensor_stream(), kCompute);
    for (int i = 0; i < 3; ++i)
      out_.collective(
          tensor_stream(), "loss of the vocabulary", Func::all_reduce, mesh_.tensor_group,
          DataType::float32,
          static_cast<std::uint64_t>(spec_.parallel.micro_batch) * model_.transformer->sequence);
    out_.after(kCompute, tensor_stream());
  }

  // ---- Parameters: units in the order of their use, forward, then backward ----

  std::size_t unit_of(std::size_t use) const {
    return use < shards_.size() ? use : 2 * shards_.size() - 1 - use;
  }

  bool keeps(std::size_t unit) const {
    const std::string& policy = spec_.parallel.reshard;
    return policy == "never" ||
           (policy == "default" && spec_.parallel.framework == "torchtitan" && is_last(unit));
  }

  // Layers without parameters, of a measured model, are no units.
  void gather(std::size_t use) {
    const std::size_t unit = unit_of(use);
    if (mesh_.shard == 1 || shards_[unit] == 0 || (use >= shards_.size() && keeps(unit))) return;
    out_.after(kComm, kCompute);
    out_.collective(kComm, "gather " + model_.layers[unit].name, Func::all_gather,
                    mesh_.shard_group, spec_.precision.parameters, shards_[unit]);
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
    if (mesh_.shard > 1)
      out_.collective(kComm, "scatter " + model_.layers[unit].name, Func::reduce_scatter,
                      mesh_.shard_group, spec_.precision.gradients, shards_[unit]);
    if (mesh_.replicate == 1) return;
    out_.after(replica_stream(), kComm);
    out_.collective(replica_stream(), "replicas of " + model_.layers[unit].name, Func::all_reduce,
                    mesh_.replica_group, spec_.precision.gradients, shards_[unit]);
  }

  void reduce(std::size_t stream, const char* what, std::uint16_t group, DataType type,
              std::uint64_t count) {
    out_.after(stream, kCompute);
    out_.collective(stream, what, Func::all_reduce, group, type, count);
    out_.after(kCompute, stream);
  }

  // What every rank of a tensor-parallel group has whole; the norm of every tensor's gradient, over
  // each dimension; the optimizer on the shards; the loss, averaged and largest.
  void finish() {
    if (mesh_.tp > 1)
      reduce(tensor_stream(), "norm gradients", mesh_.tensor_group, spec_.precision.parameters,
             replicated_);
    if (mesh_.shard > 1)
      reduce(kComm, "gradient norm", mesh_.shard_group, DataType::float32, model_.tensors());
    if (mesh_.tp > 1)
      reduce(tensor_stream(), "gradient norm", mesh_.tensor_group, DataType::float32,
             model_.tensors());
    out_.compute(kCompute, "optimizer",
                 times_.optimizer / static_cast<Picoseconds>(tp_) / mesh_.shard);
    if (mesh_.shard * mesh_.replicate == 1) return;
    for (int i = 0; i < 2; ++i) reduce(kComm, "loss", mesh_.data_group, DataType::float32, 1);
  }

  const JobSpec& spec_;
  const FsdpMesh& mesh_;
  const Model& model_;
  const StepTimes times_;
  const std::uint64_t tp_;
  std::uint64_t replicated_ = 0;       // elements that tensor parallelism does not split
  std::vector<std::uint64_t> shards_;  // elements of each unit at a rank
  std::vector<std::optional<ProgramBuilder::Mark>> gathered_;  // by use
  std::size_t launched_ = 0;                                   // uses whose gather was considered
  ProgramBuilder out_;
};

}  // namespace

Workload plan_fsdp(const JobSpec& spec) {
  Workload workload;
  const FsdpMesh mesh = fsdp_mesh(spec, workload);
  workload.roles.push_back({"fsdp", {FsdpWriter(spec, mesh).write()}});
  return workload;
}

}  // namespace ghostrank
