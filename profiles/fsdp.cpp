#include "profiles/fsdp.h"

#include <optional>

#include "profiles/compute.h"
#include "profiles/data_parallel.h"
#include "profiles/model.h"
#include "profiles/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kCompute = 0, kComm = 1;

class FsdpWriter {
 public:
  explicit FsdpWriter(const JobSpec& spec)
      : spec_(spec),
        model_(*spec.model),
        times_(step_times(spec)),
        keeps_last_(spec.parallel.framework == "torchtitan"),
        gathered_(model_.layers.size()),
        out_({"compute", "comm"}) {
    for (const Layer& layer : model_.layers) {
      std::uint64_t shard = 0;
      for (const Tensor& tensor : layer.parameters) shard += divided(tensor.numel);
      shards_.push_back(shard);
    }
  }

  Program write() {
    const std::size_t units = model_.layers.size();
    gather(0);
    for (std::size_t u = 0; u < units; ++u) {
      await(u);
      if (u + 1 < units) gather(u + 1);
      out_.compute(kCompute, "forward " + model_.layers[u].name, times_.layers[u].forward);
    }
    if (!keeps_last_) gather(units - 1);
    for (std::size_t u = units; u-- > 0;) {
      await(u);
      if (u > 0) gather(u - 1);
      out_.compute(kCompute, "backward " + model_.layers[u].name, times_.layers[u].backward);
      scatter(u);
    }
    out_.after(kCompute, kComm);
    finish();
    return out_.take();
  }

 private:
  std::uint64_t divided(std::uint64_t numel) const {
    const auto ranks = static_cast<std::uint64_t>(spec_.cluster.gpus());
    return (numel + ranks - 1) / ranks;
  }

  // The layers without parameters of a measured model are no units.
  void gather(std::size_t u) {
    if (shards_[u] == 0) return;
    out_.after(kComm, kCompute);
    out_.collective(kComm, "gather " + model_.layers[u].name, Func::all_gather, kDataParallel,
                    spec_.precision.parameters, shards_[u]);
    gathered_[u] = out_.mark(kComm, kCompute);
  }

  void await(std::size_t u) {
    if (!gathered_[u]) return;
    out_.wait(*gathered_[u]);
    gathered_[u].reset();
  }

  void scatter(std::size_t u) {
    if (shards_[u] == 0) return;
    out_.after(kComm, kCompute);
    out_.collective(kComm, "scatter " + model_.layers[u].name, Func::reduce_scatter, kDataParallel,
                    spec_.precision.gradients, shards_[u]);
  }

  // The norm of every tensor's gradient; the optimizer on the shards; the loss, averaged and
  // largest.
  void finish() {
    out_.after(kComm, kCompute);
    out_.collective(kComm, "gradient norm", Func::all_reduce, kDataParallel, DataType::float32,
                    model_.tensors());
    out_.after(kCompute, kComm);
    out_.compute(kCompute, "optimizer", times_.optimizer / spec_.cluster.gpus());
    out_.after(kComm, kCompute);
    for (int i = 0; i < 2; ++i)
      out_.collective(kComm, "loss", Func::all_reduce, kDataParallel, DataType::float32, 1);
  }

  const JobSpec& spec_;
  const Model& model_;
  const StepTimes times_;
  const bool keeps_last_;
  std::vector<std::uint64_t> shards_;  // elements of each unit at a rank
  std::vector<std::optional<ProgramBuilder::Mark>> gathered_;
  ProgramBuilder out_;
};

}  // namespace

Workload plan_fsdp(const JobSpec& spec) {
  check_data_parallel(spec);
  return data_parallel_workload(spec, {"fsdp", {FsdpWriter(spec).write()}});
}

}  // namespace ghostrank
