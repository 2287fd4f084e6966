#include "profiles/planners/zero.h"

#include <algorithm>
#include <optional>

#include "profiles/model/model.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/planners/shared/round_up.h"
#include "profiles/planners/shared/tied_table.h"
#include "profiles/planners/shared/two_streams.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kBucket = 500'000'000;

// ---- Parameters (zero3) ----

// Which parameters are gathered when. A use is a layer's forward or its backward.
class LiveParameters {
 public:
  // What is gathered and freed together: a layer's parameters, or the table that embedding and head
  // share.
  struct Unit {
    std::size_t layer = 0;     // the first that uses it
    std::uint64_t numel = 0;   // sharded elements
    std::uint64_t padded = 0;  // likewise, each tensor rounded up to a multiple of the ranks
    std::uint64_t held = 0;    // all elements, sharded or not
    bool available = false;
  };
  using Units = std::vector<std::size_t>;

  explicit LiveParameters(const JobSpec& spec);

  const Unit& unit(std::size_t number) const { return units_[number]; }
  std::size_t count() const { return units_.size(); }
  std::size_t uses() const { return 2 * of_layer_.size(); }
  const Units& of(std::size_t use) const {
    return of_layer_[use < of_layer_.size() ? use : uses() - 1 - use];
  }
  std::uint64_t most_live() const { return most_live_; }

  // What is to be gathered: for a use, then for the next ones until the prefetch bucket is full.
  Units fetch(std::size_t use);
  Units fetch_ahead();
  void release(std::size_t use);

 private:
  bool is_used_soon(std::size_t unit, std::size_t use) const;
  void gather(const Units& units);

  const ParallelPlan& parallel_;
  std::vector<Unit> units_;
  std::vector<Units> of_layer_;
  std::size_t considered_ = 0;  // uses that the prefetch has considered
  std::uint64_t live_ = 0, most_live_ = 0;
};

LiveParameters::LiveParameters(const JobSpec& spec) : parallel_(spec.parallel) {
  const Model& model = *spec.model;
  const auto ranks = static_cast<std::uint64_t>(spec.cluster.gpus());
  const auto add = [&](std::size_t layer, std::size_t first, std::size_t end) {
    Unit unit{.layer = layer};
    for (std::size_t i = first; i < end; ++i) {
      const std::uint64_t numel = model.layers[layer].parameters[i].numel;
      unit.held += numel;
      if (numel <= parallel_.persistence) continue;
      unit.numel += numel;
      unit.padded += round_up(numel, ranks);
    }
    units_.push_back(unit);
    of_layer_[layer].push_back(units_.size() - 1);
  };
  of_layer_.resize(model.layers.size());
  const bool tied = head_has_embedding(model);
  if (tied) add(0, 0, 1);
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer)
    add(layer, tied && layer == 0 ? 1 : 0, model.layers[layer].parameters.size());
  if (tied) of_layer_.back().push_back(0);
}

void LiveParameters::gather(const Units& units) {
  for (const std::size_t unit : units) {
    units_[unit].available = true;
    live_ += units_[unit].numel;
  }
  most_live_ = std::max(most_live_, live_);
}

LiveParameters::Units LiveParameters::fetch(std::size_t use) {
  considered_ = std::max(considered_, use + 1);
  Units missing;
  for (const std::size_t unit : of(use))
    if (!units_[unit].available) missing.push_back(unit);
  gather(missing);
  return missing;
}

LiveParameters::Units LiveParameters::fetch_ahead() {
  const std::uint64_t room = parallel_.max_live > live_ ? parallel_.max_live - live_ : 0;
  const std::uint64_t most = std::min(room, parallel_.prefetch_bucket);
  Units next;
  std::uint64_t numel = 0;
  for (; considered_ < uses() && numel < most; ++considered_)
    for (const std::size_t ahead : of(considered_)) {
      const bool twice = std::find(next.begin(), next.end(), ahead) != next.end();
      if (units_[ahead].available || twice || units_[ahead].numel == 0) continue;
      next.push_back(ahead);
      numel += units_[ahead].numel;
    }
  gather(next);
  return next;
}

// True if fewer elements than the reuse distance lie between this use and the unit's next one, or
// if the prefetch relies on the unit, which it has found still gathered.
bool LiveParameters::is_used_soon(std::size_t unit, std::size_t use) const {
  std::uint64_t between = 0;
  for (std::size_t later = use + 1; later < uses(); ++later) {
    if (between >= parallel_.max_reuse && considered_ <= later) return false;
    const Units& used = of(later);
    if (std::find(used.begin(), used.end(), unit) != used.end())
      return between < parallel_.max_reuse || considered_ > later;
    for (const std::size_t other : used) between += units_[other].held;
  }
  return false;
}

void LiveParameters::release(std::size_t use) {
  for (const std::size_t unit : of(use)) {
    if (!units_[unit].available || is_used_soon(unit, use)) continue;
    units_[unit].available = false;
    live_ -= units_[unit].numel;
  }
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
  struct Slice {  // a range of the flat parameters
    std::uint64_t start = 0, numel = 0;
  };

  void gather(LiveParameters::Units units);
  void fetch(std::size_t use);
  void release(std::size_t use) {
    if (sharded_) live_.release(use);
  }
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
  std::vector<std::uint64_t> starts_;  // start of each layer in the flat parameters
  // zero3: marks of the gathers so far, empty once waited for; by unit, the gather that fetches it,
  // empty if nothing is sharded.
  LiveParameters live_;
  std::vector<std::optional<ProgramBuilder::Mark>> batches_;
  std::vector<std::optional<std::size_t>> batch_of_;
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
      live_(spec),
      batch_of_(live_.count()),
      out_({"compute", "comm"}) {
  std::uint64_t start = 0;
  for (const Layer& layer : model_.layers) {
    starts_.push_back(start);
    for (const ParameterTensor& tensor : layer.parameters) start += tensor.numel;
  }
}

// Gathers the parameters of `units` in one call.
void ZeroWriter::gather(LiveParameters::Units units) {
  std::erase_if(units, [&](std::size_t unit) { return live_.unit(unit).padded == 0; });
  if (units.empty()) return;
  std::uint64_t padded = 0;
  for (const std::size_t unit : units) {
    batch_of_[unit] = batches_.size();
    padded += live_.unit(unit).padded;
  }
  const std::string& first = model_.layers[live_.unit(units.front()).layer].name;
  const std::string& last = model_.layers[live_.unit(units.back()).layer].name;
  out_.after(kComm, kCompute);
  out_.collective(kComm, "gather " + first + (first == last ? "" : " to " + last), Func::all_gather,
                  kDataParallel, spec_.precision.parameters, padded / ranks_);
  batches_.push_back(out_.mark(kComm, kCompute));
}

// Before a use: waits for its parameters, then gathers those of the next ones.
void ZeroWriter::fetch(std::size_t use) {
  if (!sharded_) return;
  gather(live_.fetch(use));
  for (const std::size_t unit : live_.of(use)) {
    if (!batch_of_[unit]) continue;
    auto& batch = batches_[*batch_of_[unit]];
    if (batch) out_.wait(*batch);
    batch.reset();
  }
  gather(live_.fetch_ahead());
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

// With fp16 whether the loss scale was too large for some gradient (a byte in DeepSpeed, here a
// float, which schemes on switches add, too); the norm of the gradients, then the optimizer on the
// shards. Stages 1 and 2 gather the new parameters, stage 3 those that it keeps, each by a call of
// its own.
void ZeroWriter::finish() {
  out_.after(kComm, kCompute);
  if (spec_.precision.parameters == DataType::float16)
    out_.collective(kComm, "overflow", Func::all_reduce, kDataParallel, DataType::float32, 1, 0, 0,
                    Reduction::max);
  out_.collective(kComm, "gradient norm", Func::all_reduce, kDataParallel, DataType::float32, 1);
  out_.after(kCompute, kComm);
  const Picoseconds whole = times_.optimizer - model_.before_optimizer;
  out_.compute(kCompute, "optimizer",
               model_.before_optimizer + whole / static_cast<Picoseconds>(ranks_));
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

std::uint64_t most_gathered(const JobSpec& spec) {
  LiveParameters live(spec);
  for (std::size_t use = 0; use < live.uses(); ++use) {
    live.fetch(use);
    live.fetch_ahead();
    live.release(use);
  }
  return live.most_live();
}

Workload plan_zero(const JobSpec& spec) {
  check_data_parallel(spec);
  return data_parallel_workload(
      spec, {std::string(name_of(spec.parallel.framework)), {ZeroWriter(spec).write()}});
}

}  // namespace ghostrank
