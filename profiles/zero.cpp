#include "profiles/zero.h"

#include <optional>

#include "profiles/data_parallel.h"
#include "profiles/model.h"
#include "profiles/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kCompute = 0, kComm = 1;
constexpr std::uint64_t kBucket = 500'000'000, kPrefetch = 50'000'000, kPersistent = 100'000;

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class ZeroWriter {
 public:
  explicit ZeroWriter(const JobSpec& spec)
      : spec_(spec),
        model_(*spec.model),
        sharded_(spec.parallel.framework == "zero3"),
        ranks_(static_cast<std::uint64_t>(spec.cluster.gpus())),
        bucket_size_(spec.parallel.bucket_size > 0 ? spec.parallel.bucket_size : kBucket),
        times_(step_times(spec)),
        out_({"compute", "comm"}) {
    for (const Layer& layer : model_.layers) {
      Unit unit;
      for (const Tensor& tensor : layer.parameters)
        if (tensor.numel > kPersistent) unit.numel += round_up(tensor.numel, ranks_);
      units_.push_back(unit);
    }
  }

  Program write() {
    const std::size_t count = model_.layers.size();
    begin_trace();
    for (std::size_t u = 0; u < count; ++u) {
      fetch(u);
      out_.compute(kCompute, "forward " + model_.layers[u].name, times_.layers[u].forward);
    }
    for (std::size_t u = count; u-- > 0;) {
      fetch(2 * count - 1 - u);
      out_.compute(kCompute, "backward " + model_.layers[u].name, times_.layers[u].backward);
      collect(model_.layers[u]);
    }
    if (open_ > 0) reduce();
    out_.after(kCompute, kComm);
    finish();
    return out_.take();
  }

 private:
  struct Unit {
    std::uint64_t numel = 0;  // sharded, padded; 0: stays
  };

  // ---- Parameters (zero3): the layers in the order of their use, forward then backward ----

  std::size_t layer_at(std::size_t use) const {
    return use < units_.size() ? use : 2 * units_.size() - 1 - use;
  }

  void begin_trace() { gathered_.resize(2 * units_.size()); }

  // Launches the gather of one use. A layer that is still there, the last one as its backward
  // begins, is not gathered again.
  void gather(std::size_t use) {
    const Unit& unit = units_[layer_at(use)];
    if (unit.numel == 0 || use == units_.size()) return;
    out_.after(kComm, kCompute);
    out_.collective(kComm, "gather " + model_.layers[layer_at(use)].name, Func::all_gather,
                    kDataParallel, spec_.precision.parameters, unit.numel / ranks_);
    gathered_[use] = out_.mark(kComm, kCompute);
  }

  // Before a use: its parameters are here, and those of the next uses are on their way, as far as
  // the prefetch bucket reaches.
  void fetch(std::size_t use) {
    if (!sharded_) return;
    if (launched_ <= use) gather(launched_++);
    if (gathered_[use]) out_.wait(*gathered_[use]);
    std::uint64_t ahead = 0;
    for (std::size_t next = use + 1; next < launched_; ++next)
      ahead += units_[layer_at(next)].numel;
    while (launched_ < gathered_.size() && ahead + units_[layer_at(launched_)].numel <= kPrefetch) {
      ahead += units_[layer_at(launched_)].numel;
      gather(launched_++);
    }
  }

  // ---- Gradients ----

  // A bucket that the next tensor does not fit into is reduced first.
  void collect(const Layer& layer) {
    for (std::size_t i = layer.parameters.size(); i-- > 0;) {
      const std::uint64_t numel = layer.parameters[i].numel;
      if (open_ > 0 && open_ + numel > bucket_size_) reduce();
      open_ += numel;
      open_padded_ += round_up(numel, ranks_);
    }
  }

  void reduce() {
    out_.after(kComm, kCompute);
    out_.collective(kComm, "gradients", sharded_ ? Func::reduce_scatter : Func::all_reduce,
                    kDataParallel, spec_.precision.parameters,
                    sharded_ ? open_padded_ / ranks_ : open_);
    if (!sharded_) out_.after(kCompute, kComm);
    open_ = open_padded_ = 0;
  }

  // The norm of the gradients, the optimizer on the shards; stages 1 and 2 gather what it changed.
  void finish() {
    out_.after(kComm, kCompute);
    out_.collective(kComm, "gradient norm", Func::all_reduce, kDataParallel, DataType::float32, 1);
    out_.after(kCompute, kComm);
    out_.compute(kCompute, "optimizer", times_.optimizer / static_cast<Picoseconds>(ranks_));
    if (sharded_) return;
    out_.after(kComm, kCompute);
    out_.collective(kComm, "parameters", Func::all_gather, kDataParallel,
                    spec_.precision.parameters, round_up(model_.parameters(), 2 * ranks_) / ranks_);
    out_.after(kCompute, kComm);
  }

  const JobSpec& spec_;
  const Model& model_;
  const bool sharded_;
  const std::uint64_t ranks_, bucket_size_;
  const StepTimes times_;
  std::vector<Unit> units_;
  std::vector<std::optional<ProgramBuilder::Mark>> gathered_;  // by use
  std::size_t launched_ = 0;                                   // uses whose gather was considered
  std::uint64_t open_ = 0, open_padded_ = 0;                   // elements of the open bucket
  ProgramBuilder out_;
};

}  // namespace

Workload plan_zero(const JobSpec& spec) {
  check_data_parallel(spec);
  return data_parallel_workload(spec, {spec.parallel.framework, {ZeroWriter(spec).write()}});
}

}  // namespace ghostrank
