#include "profiles/planners/ddp.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collectives/library.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/planners/shared/tensor_layouts.h"
#include "profiles/planners/shared/two_streams.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

// Everything that the programs of the iterations share.
struct Plan {
  const Model& model;
  StepTimes times;  // of the iteration that is being written
  DataType gradients;
  std::vector<Bucket> buckets;
  bool by_tensor = false;    // every tensor by itself: nothing to learn and rebuild
  std::uint8_t at_once = 1;  // collectives that the process group runs together
};

// ProcessGroupGloo's default number of threads.
constexpr std::uint8_t kGlooThreads = 2;

ProgramBuilder start(const Plan& plan) {
  ProgramBuilder out({"compute", "comm"});
  out.at_once(kComm, plan.at_once);
  return out;
}

// Broadcasts rank 0's buffers: one call per type, in the order of the buffers of a batch norm.
void broadcast_buffers(ProgramBuilder& out, const Model& model) {
  if (model.batch_counters == 0 && model.running_statistics == 0) return;
  if (model.running_statistics > 0)
    out.collective(kComm, "running statistics", Func::broadcast, kDataParallel, DataType::float32,
                   model.running_statistics);
  if (model.batch_counters > 0)
    out.collective(kComm, "batch counters", Func::broadcast, kDataParallel, DataType::int64,
                   model.batch_counters);
  out.after(kCompute, kComm);
}

void forward(ProgramBuilder& out, const Plan& plan) {
  broadcast_buffers(out, plan.model);
  for (std::size_t i = 0; i < plan.model.layers.size(); ++i)
    out.compute(kCompute, "forward " + plan.model.layers[i].name, plan.times.layers[i].forward);
}

void backward(ProgramBuilder& out, const Plan& plan, std::size_t layer) {
  out.compute(kCompute, "backward " + plan.model.layers[layer].name,
              plan.times.layers[layer].backward);
}

void reduce_bucket(ProgramBuilder& out, const Plan& plan, std::size_t b) {
  out.collective(kComm, "bucket " + std::to_string(b), Func::all_reduce, kDataParallel,
                 plan.gradients, plan.buckets[b].numel, 0, b + 1);
}

// Copies gradients out of each bucket when its call has ended; then the optimizer. `reduced`: the
// marks behind the buckets' calls.
void finish(ProgramBuilder& out, const Plan& plan,
            const std::vector<ProgramBuilder::Mark>& reduced) {
  if (plan.model.find_unused)
    out.collective(kComm, "used parameters", Func::all_reduce, kDataParallel, DataType::int32,
                   plan.model.tensors());
  std::size_t tensor = plan.times.copies.size();
  for (std::size_t b = 0; b < reduced.size() && tensor > 0; ++b) {
    out.wait(reduced[b]);
    Picoseconds copying = 0;
    for (std::size_t i = 0; i < plan.buckets[b].tensors; ++i)
      copying += plan.times.copies[--tensor];
    out.compute(kCompute, "gradients of bucket " + std::to_string(b), copying);
  }
  out.after(kCompute, kComm);
  Picoseconds copying = 0;  // of gradients that one call reduced
  while (tensor > 0) copying += plan.times.copies[--tensor];
  out.compute(kCompute, "gradients", copying);
  out.compute(kCompute, "optimizer", plan.times.optimizer);
}

// Reduces a bucket, and marks the end of the call if copies of gradients wait for it.
void reduce_and_mark(ProgramBuilder& out, const Plan& plan, std::size_t b,
                     std::vector<ProgramBuilder::Mark>& reduced) {
  reduce_bucket(out, plan, b);
  if (!plan.times.copies.empty()) reduced.push_back(out.mark(kComm, kCompute));
}

// The whole backward, then the calls of all buckets, or one call for all gradients.
void reduce_after_backward(ProgramBuilder& out, const Plan& plan, bool one_for_all) {
  for (std::size_t layer = plan.model.layers.size(); layer-- > 0;) backward(out, plan, layer);
  out.after(kComm, kCompute);
  std::vector<ProgramBuilder::Mark> reduced;
  if (one_for_all)
    out.collective(kComm, "gradients", Func::all_reduce, kDataParallel, plan.gradients,
                   plan.model.parameters(), 0, plan.buckets.size() + 1);
  else
    for (std::size_t b = 0; b < plan.buckets.size(); ++b) reduce_and_mark(out, plan, b, reduced);
  finish(out, plan, reduced);
}

void reduce_during_backward(ProgramBuilder& out, const Plan& plan) {
  std::size_t next = 0;
  std::vector<ProgramBuilder::Mark> reduced;
  for (std::size_t layer = plan.model.layers.size(); layer-- > 0;) {
    backward(out, plan, layer);
    if (next == plan.buckets.size() || plan.buckets[next].last_layer != layer) continue;
    out.after(kComm, kCompute);
    for (; next < plan.buckets.size() && plan.buckets[next].last_layer == layer; ++next)
      reduce_and_mark(out, plan, next, reduced);
  }
  finish(out, plan, reduced);
}

void rebuild(ProgramBuilder& out, const Plan& plan) {
  out.collective(kComm, "bucket indices", Func::broadcast, kDataParallel, DataType::int32,
                 plan.model.tensors() + 1);
  out.after(kCompute, kComm);
  out.collective(kComm, "bucket sizes", Func::broadcast, kDataParallel, DataType::int32,
                 plan.buckets.size());
  out.after(kCompute, kComm);
}

Program first_iteration(const Plan& plan) {
  ProgramBuilder out = start(plan);
  forward(out, plan);
  reduce_after_backward(out, plan, true);
  return out.take();
}

Program later_iteration(const Plan& plan, Launch launch, bool rebuilds) {
  ProgramBuilder out = start(plan);
  if (rebuilds) rebuild(out, plan);
  forward(out, plan);
  if (launch == Launch::overlap)
    reduce_during_backward(out, plan);
  else
    reduce_after_backward(out, plan, false);
  return out.take();
}

std::uint64_t mebibytes(double value) { return static_cast<std::uint64_t>(value * (1 << 20)); }

// Buckets that were measured, `tensors` in each.
std::vector<Bucket> measured_buckets(const Model& model, std::uint32_t element_bytes) {
  std::vector<Bucket> buckets(1);
  for (std::size_t layer = model.layers.size(); layer-- > 0;) {
    const auto& parameters = model.layers[layer].parameters;
    for (auto tensor = parameters.rbegin(); tensor != parameters.rend(); ++tensor) {
      if (buckets.back().tensors == model.buckets[buckets.size() - 1]) buckets.emplace_back();
      buckets.back().numel += tensor->numel;
      buckets.back().bytes += tensor->numel * element_bytes;
      buckets.back().last_layer = layer;
      ++buckets.back().tensors;
    }
  }
  return buckets;
}

bool merges(const JobSpec& spec, Merge merge) {
  return spec.compression && spec.compression->merge == merge;
}

Launch launch_of(const JobSpec& spec) {
  return merges(spec, Merge::model) ? Launch::flat : spec.parallel.launch;
}

std::vector<Bucket> buckets_of(const JobSpec& spec) {
  const ParallelPlan& parallel = spec.parallel;
  if (launch_of(spec) == Launch::flat) return {};
  const std::uint32_t bytes = bytes_of(spec.precision.gradients);
  if (merges(spec, Merge::tensor)) return ddp_buckets(*spec.model, bytes, 1, 1);
  const bool asked = spec.sources.contains("parallel.bucket_cap_mb") ||
                     spec.sources.contains("parallel.first_bucket_mb");
  if (!spec.model->buckets.empty() && !asked) return measured_buckets(*spec.model, bytes);
  return ddp_buckets(*spec.model, bytes, mebibytes(parallel.first_bucket_mb),
                     mebibytes(parallel.bucket_cap_mb));
}

// The programs of a rank: the first iterations, from which DDP learns its buckets, then one for
// every recorded step, beginning with step `first`.
Role role_of(Plan plan, Launch launch, const std::vector<StepTimes>& recorded, std::size_t first) {
  Role role{"ddp", {}};
  const bool flat = launch == Launch::flat;
  const bool learns = !plan.by_tensor && (flat || !plan.model.find_unused);
  if (learns) {
    role.iterations.push_back(first_iteration(plan));
    if (!flat) role.iterations.push_back(later_iteration(plan, launch, true));
  }
  if (recorded.empty() && (!learns || !flat))
    role.iterations.push_back(later_iteration(plan, launch, false));
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    plan.times = recorded[(first + i) % recorded.size()];
    role.iterations.push_back(flat ? first_iteration(plan) : later_iteration(plan, launch, false));
  }
  return role;
}

// Roles of a job that replays recorded steps. Where it has more ranks than were captured, those
// that share a captured rank play its steps shifted against each other, unless the captured ranks
// were slow in the same steps.
constexpr std::size_t kMaxShifts = 16;

double seconds_of(const StepTimes& step) {
  Picoseconds sum = step.optimizer;
  for (const LayerTime& layer : step.layers) sum += layer.forward + layer.backward;
  return static_cast<double>(sum) / static_cast<double>(kPicosPerSecond);
}

double variance(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / count;
}

// True if two ranks' compute times per step correlate by more than a half on average. The variance
// of the ranks' mean tells, because it is the mean of all entries of their covariance matrix.
bool go_together(const std::vector<std::vector<StepTimes>>& recorded) {
  const auto ranks = static_cast<double>(recorded.size());
  std::vector<double> mean(recorded.front().size());
  double own = 0;  // mean variance of a rank
  for (const auto& rank : recorded) {
    std::vector<double> seconds;
    for (const StepTimes& step : rank) seconds.push_back(seconds_of(step));
    own += variance(seconds) / ranks;
    for (std::size_t s = 0; s < mean.size(); ++s) mean[s] += seconds[s] / ranks;
  }
  return ranks > 1 && ranks * variance(mean) - own > (ranks - 1) * own / 2;
}

Workload recorded_workload(const JobSpec& spec, const Plan& plan) {
  const auto& recorded = spec.model->recorded;
  const std::size_t steps = recorded.front().size(), ranks = recorded.size(),
                    gpus = static_cast<std::size_t>(spec.cluster.gpus());
  const std::size_t shifts =
      go_together(recorded) ? 1 : std::min({(gpus + ranks - 1) / ranks, kMaxShifts, steps});
  std::vector<Role> roles;
  for (std::size_t shift = 0; shift < shifts; ++shift)
    for (const auto& rank : recorded)
      roles.push_back(role_of(plan, launch_of(spec), rank, shift * steps / shifts));
  if (roles.size() > gpus) roles.resize(gpus);
  Workload workload = data_parallel_roles(spec, std::move(roles));
  const auto programs = static_cast<std::uint32_t>(workload.roles.front().iterations.size());
  for (std::uint32_t i = 0; i < programs; ++i) workload.order.push_back(i);
  workload.cycle = static_cast<std::uint32_t>(steps);
  return workload;
}

}  // namespace

std::vector<Bucket> ddp_buckets(const Model& model, std::uint32_t element_bytes,
                                std::uint64_t first_bytes, std::uint64_t cap_bytes) {
  std::vector<std::pair<std::uint64_t, std::size_t>> tensors;  // elements, layer; as registered
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer)
    for (const auto& tensor : model.layers[layer].parameters)
      tensors.emplace_back(tensor.numel, layer);
  if (!model.find_unused) std::reverse(tensors.begin(), tensors.end());
  std::vector<Bucket> buckets;
  Bucket open;
  for (const auto& [numel, layer] : tensors) {
    open.numel += numel;
    open.bytes += numel * element_bytes;
    open.last_layer = open.tensors == 0 ? layer : std::min(open.last_layer, layer);
    ++open.tensors;
    if (open.bytes < (buckets.empty() ? first_bytes : cap_bytes)) continue;
    buckets.push_back(open);
    open = {};
  }
  if (open.tensors > 0) buckets.push_back(open);
  if (model.find_unused) std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

bool plays_recorded_steps(const JobSpec& spec) {
  return spec.parallel.framework == Framework::ddp && !spec.model->recorded.empty() &&
         !(spec.compression && spec.compression->adapts);
}

Workload plan_ddp(const JobSpec& spec) {
  check_data_parallel(spec);
  const Plan plan{
      *spec.model,
      step_times(spec),
      spec.precision.gradients,
      buckets_of(spec),
      merges(spec, Merge::tensor),
      library_named(spec.collectives.library) == Library::gloo ? kGlooThreads : std::uint8_t{1}};
  Workload workload = plays_recorded_steps(spec)
                          ? recorded_workload(spec, plan)
                          : data_parallel_workload(spec, role_of(plan, launch_of(spec), {}, 0));
  std::vector<std::size_t> tensors;
  for (const Bucket& bucket : plan.buckets) tensors.push_back(bucket.tensors);
  if (!spec.compression) workload.layouts = tensor_layouts(spec, tensors);
  return workload;
}

}  // namespace ghostrank
