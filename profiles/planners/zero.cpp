#include "profiles/planners/zero.h"

#include <algorithm>
#include <optional>

#include "profiles/model/model.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kCompute = 0, kComm = 1;
constexpr std::uint64_t kBucket = 500'000'000;

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class ZeroWriter {
 public:
  explicit ZeroWriter(const JobSpec& spec);

  Program write() {
    const std::size_t count = model_.layers.size();
    for (std::size_t u = 0; u < count; ++u) {
      fetch(u);
      out_.compute(kCompute, "forward " + model_.layers[u].name, times_.layers[u].forward);
      release(u);
    }
    for (std::size_t u = count; u-- > 0;) {
      fetch(2 * count - 1 - u);
      out_.compute(kCompute, "backward " + model_.layers[u].name, times_.layers[u].backward);
      release(2 * count - 1 - u);
      collect(model_.layers[u], starts_[u]);
    }
    reduce();
    out_.after(kCompute, kComm);
    finish();
    return out_.take();
  }

 private:
  struct Unit {
    std::uint64_t numel = 0;   // sharded elements
    std::uint64_t padded = 0;  // likewise, each tensor rounded up to a multiple of the ranks
    std::uint64_t held = 0;    // all elements, sharded or not
    bool available = false;
    std::optional<std::size_t> batch;  // the gather that fetches it; empty: nothing is sharded
  };
  struct Slice {  // a range of the flat parameters
    std::uint64_t start = 0, numel = 0;
  };

  std::size_t layer_at(std::size_t use) const {
    return use < units_.size() ? use : 2 * units_.size() - 1 - use;
  }
  void gather(const std::vector<std::size_t>& layers);
  void fetch(std::size_t use);
  void release(std::size_t use);
  bool is_used_soon(std::size_t use) const;
  void collect(const Layer& layer, std::uint64_t start);
  void reduce();
  void reduce_to_owners();
  void finish();
  void gather_kept();

  const JobSpec& spec_;
  const ParallelPlan& parallel_;
  const Model& model_;
  const bool sharded_;
  const std::uint64_t ranks_, bucket_size_, partition_;
  const StepTimes times_;
  std::vector<Unit> units_;            // by layer
  std::vector<std::uint64_t> starts_;  // start of each layer in the flat parameters
  // zero3: marks of the gathers so far; how many uses (layers in forward, then backward order) the
  // prefetch has considered; elements gathered now.
  std::vector<std::optional<ProgramBuilder::Mark>> batches_;
  std::size_t considered_ = 0;
  std::uint64_t live_ = 0;
  // The open bucket.
  std::vector<Slice> bucket_;
  std::uint64_t open_ = 0, open_padded_ = 0;
  std::size_t tensors_ = 0;  // tensors named so far
  ProgramBuilder out_;
};

ZeroWriter::ZeroWriter(const JobSpec& spec)
    : spec_(spec),
      parallel_(spec.parallel),
      model_(*spec.model),
      sharded_(spec.parallel.framework == Framework::zero3),
      ranks_(static_cast<std::uint64_t>(spec.cluster.gpus())),
      bucket_size_(spec.parallel.bucket_size > 0 ? spec.parallel.bucket_size : kBucket),
      partition_(round_up(model_.parameters(), 2 * ranks_) / ranks_),
      times_(step_times(spec)),
      out_({"compute", "comm"}) {
  std::uint64_t start = 0;
  for (const Layer& layer : model_.layers) {
    Unit unit;
    for (const ParameterTensor& tensor : layer.parameters) {
      unit.held += tensor.numel;
      if (tensor.numel <= parallel_.persistence) continue;
      unit.numel += tensor.numel;
      unit.padded += round_up(tensor.numel, ranks_);
    }
    units_.push_back(unit);
    starts_.push_back(start);
    start += unit.held;
  }
}

// ---- Parameters (zero3) ----

// Gathers the parameters of `layers` in one call.
void ZeroWriter::gather(const std::vector<std::size_t>& layers) {
  std::uint64_t padded = 0;
  for (const std::size_t layer : layers) {
    units_[layer].available = true;
    if (units_[layer].padded > 0) units_[layer].batch = batches_.size();
    live_ += units_[layer].numel;
    padded += units_[layer].padded;
  }
  if (padded == 0) return;
  const std::string& first = model_.layers[layers.front()].name;
  out_.after(kComm, kCompute);
  out_.collective(
      kComm,
      "gather " + first + (layers.size() > 1 ? " to " + model_.layers[layers.back()].name : ""),
      Func::all_gather, kDataParallel, spec_.precision.parameters, padded / ranks_);
  batches_.push_back(out_.mark(kComm, kCompute));
}

// Before a use: waits for the layer's parameters, then fills the prefetch bucket with those of the
// next uses.
void ZeroWriter::fetch(std::size_t use) {
  if (!sharded_) return;
  const std::size_t layer = layer_at(use);
  considered_ = std::max(considered_, use + 1);
  if (!units_[layer].available) gather({layer});
  if (units_[layer].batch) {
    auto& batch = batches_[*units_[layer].batch];
    if (batch) out_.wait(*batch);
    batch.reset();
  }
  const std::uint64_t room = parallel_.max_live > live_ ? parallel_.max_live - live_ : 0;
  const std::uint64_t most = std::min(room, parallel_.prefetch_bucket);
  std::vector<std::size_t> next;
  std::uint64_t numel = 0;
  for (; considered_ < 2 * units_.size() && numel < most; ++considered_) {
    const std::size_t ahead = layer_at(considered_);
    const bool twice = std::find(next.begin(), next.end(), ahead) != next.end();
    if (units_[ahead].available || twice || units_[ahead].numel == 0) continue;
    next.push_back(ahead);
    numel += units_[ahead].numel;
  }
  if (!next.empty()) gather(next);
}

// True if fewer elements than the reuse distance lie between a layer's forward and its backward, or
// if the prefetch relies on the layer.
bool ZeroWriter::is_used_soon(std::size_t use) const {
  if (use >= units_.size()) return false;
  std::uint64_t between = 0;
  for (std::size_t later = use + 1; later < units_.size(); ++later)
    between += 2 * units_[later].held;
  // The prefetch has found the layer still gathered.
  const bool was_considered = considered_ > 2 * units_.size() - 1 - use;
  return between < parallel_.max_reuse || was_considered;
}

void ZeroWriter::release(std::size_t use) {
  Unit& unit = units_[layer_at(use)];
  if (!unit.available || is_used_soon(use)) return;
  unit.available = false;
  live_ -= unit.numel;
}

// ---- Gradients ----

// Adds a layer's gradients to the open bucket, and reduces the bucket before a tensor that does not
// fit.
void ZeroWriter::collect(const Layer& layer, std::uint64_t start) {
  for (const ParameterTensor& tensor : layer.parameters) start += tensor.numel;
  for (std::size_t i = layer.parameters.size(); i-- > 0;) {
    const std::uint64_t numel = layer.parameters[i].numel;
    if (open_ + numel > bucket_size_) reduce();
    start -= numel;
    bucket_.push_back({start, numel});
    open_ += numel;
    open_padded_ += round_up(numel, ranks_);
  }
}

void ZeroWriter::reduce() {
  if (open_ == 0) return;
  if (parallel_.overlap_comm && !sharded_) out_.after(kCompute, kComm);  // the bucket before it
  out_.after(kComm, kCompute);
  if (sharded_)
    out_.collective(kComm, "gradients", Func::reduce_scatter, kDataParallel,
                    spec_.precision.gradients, open_padded_ / ranks_, 0, ++tensors_);
  else if (parallel_.multi_rank_allreduce)
    out_.collective(kComm, "gradients", Func::all_reduce, kDataParallel, spec_.precision.gradients,
                    open_, 0, ++tensors_);
  else
    reduce_to_owners();
  if (!parallel_.overlap_comm) out_.after(kCompute, kComm);
  bucket_.clear();
  open_ = open_padded_ = 0;
}

// Reduces each rank's part of the bucket to it, in the order in which the ranks' partitions first
// occur.
void ZeroWriter::reduce_to_owners() {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> owners;  // rank, elements
  for (Slice slice : bucket_)
    while (slice.numel > 0) {
      const std::uint64_t rank = slice.start / partition_;
      const std::uint64_t here = std::min(slice.numel, (rank + 1) * partition_ - slice.start);
      auto at = std::find_if(owners.begin(), owners.end(),
                             [&](const auto& owner) { return owner.first == rank; });
      if (at == owners.end()) at = owners.insert(at, {rank, 0});
      at->second += here;
      slice = {slice.start + here, slice.numel - here};
    }
  for (const auto& [rank, numel] : owners)
    out_.collective(kComm, "gradients", Func::reduce, kDataParallel, spec_.precision.gradients,
                    numel, static_cast<std::int32_t>(rank), ++tensors_);
}

// The norm of the gradients, then the optimizer on the shards. Stages 1 and 2 gather the new
// parameters, stage 3 those that it keeps, each by a call of its own.
void ZeroWriter::finish() {
  out_.after(kComm, kCompute);
  out_.collective(kComm, "gradient norm", Func::all_reduce, kDataParallel, DataType::float32, 1);
  out_.after(kCompute, kComm);
  out_.compute(kCompute, "optimizer", times_.optimizer / static_cast<Picoseconds>(ranks_));
  out_.after(kComm, kCompute);
  if (sharded_)
    gather_kept();
  else
    out_.collective(kComm, "parameters", Func::all_gather, kDataParallel,
                    spec_.precision.parameters, partition_);
  out_.after(kCompute, kComm);
}

void ZeroWriter::gather_kept() {
  for (const Layer& layer : model_.layers)
    for (const ParameterTensor& tensor : layer.parameters)
      if (tensor.numel <= parallel_.persistence)
        out_.collective(kComm, "kept parameters", Func::all_gather, kDataParallel,
                        spec_.precision.parameters, round_up(tensor.numel, ranks_) / ranks_);
}

}  // namespace

Workload plan_zero(const JobSpec& spec) {
  check_data_parallel(spec);
  return data_parallel_workload(
      spec, {std::string(name_of(spec.parallel.framework)), {ZeroWriter(spec).write()}});
}

}  // namespace ghostrank
