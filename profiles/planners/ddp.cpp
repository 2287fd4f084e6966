#include "profiles/planners/ddp.h"

#include <utility>

#include "collectives/library.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kCompute = 0, kComm = 1;

// Everything that the programs of the iterations share.
struct Plan {
  const Model& model;
  StepTimes times;
  DataType gradients;
  std::vector<Bucket> buckets;
  std::uint8_t at_once = 1;  // collectives that the process group runs together
};

// ProcessGroupGloo's default number of threads.
constexpr std::uint8_t kGlooThreads = 2;

ProgramBuilder start(const Plan& plan) {
  ProgramBuilder out({"compute", "comm"});
  out.at_once(kComm, plan.at_once);
  return out;
}

// Broadcasts rank 0's batch-norm buffers: one call per type, in the order of the buffers.
void broadcast_buffers(ProgramBuilder& out, const Model& model) {
  if (model.batch_counters == 0) return;
  out.collective(kComm, "running statistics", Func::broadcast, kDataParallel, DataType::float32,
                 model.running_statistics);
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

void optimizer_after_comm(ProgramBuilder& out, const Plan& plan) {
  out.after(kCompute, kComm);
  out.compute(kCompute, "optimizer", plan.times.optimizer);
}

// A backward without overlap; after it all buckets, or one call for all gradients.
void reduce_after_backward(ProgramBuilder& out, const Plan& plan, bool one_for_all) {
  for (std::size_t layer = plan.model.layers.size(); layer-- > 0;) backward(out, plan, layer);
  out.after(kComm, kCompute);
  if (one_for_all)
    out.collective(kComm, "gradients", Func::all_reduce, kDataParallel, plan.gradients,
                   plan.model.parameters(), 0, plan.buckets.size() + 1);
  else
    for (std::size_t b = 0; b < plan.buckets.size(); ++b) reduce_bucket(out, plan, b);
  optimizer_after_comm(out, plan);
}

void reduce_during_backward(ProgramBuilder& out, const Plan& plan) {
  std::size_t next = 0;
  for (std::size_t layer = plan.model.layers.size(); layer-- > 0;) {
    backward(out, plan, layer);
    if (next == plan.buckets.size() || plan.buckets[next].last_layer != layer) continue;
    out.after(kComm, kCompute);
    for (; next < plan.buckets.size() && plan.buckets[next].last_layer == layer; ++next)
      reduce_bucket(out, plan, next);
  }
  optimizer_after_comm(out, plan);
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

}  // namespace

std::vector<Bucket> ddp_buckets(const Model& model, std::uint32_t element_bytes,
                                std::uint64_t first_bytes, std::uint64_t cap_bytes) {
  std::vector<Bucket> buckets;
  Bucket open;
  for (std::size_t layer = model.layers.size(); layer-- > 0;) {
    const auto& parameters = model.layers[layer].parameters;
    for (auto tensor = parameters.rbegin(); tensor != parameters.rend(); ++tensor) {
      open.numel += tensor->numel;
      open.bytes += tensor->numel * element_bytes;
      open.last_layer = layer;
      ++open.tensors;
      if (open.bytes < (buckets.empty() ? first_bytes : cap_bytes)) continue;
      buckets.push_back(open);
      open = {};
    }
  }
  if (open.tensors > 0) buckets.push_back(open);
  return buckets;
}

Workload plan_ddp(const JobSpec& spec) {
  check_data_parallel(spec);
  const ParallelPlan& parallel = spec.parallel;
  const Plan plan{
      *spec.model, step_times(spec), spec.precision.gradients,
      parallel.launch == Launch::flat
          ? std::vector<Bucket>{}
          : ddp_buckets(*spec.model, bytes_of(spec.precision.gradients),
                        mebibytes(parallel.first_bucket_mb), mebibytes(parallel.bucket_cap_mb)),
      library_named(spec.collectives.library) == Library::gloo ? kGlooThreads : std::uint8_t{1}};
  Role role{"ddp", {}};
  role.iterations.push_back(first_iteration(plan));
  if (parallel.launch != Launch::flat) {
    role.iterations.push_back(later_iteration(plan, parallel.launch, true));
    role.iterations.push_back(later_iteration(plan, parallel.launch, false));
  }

  return data_parallel_workload(spec, std::move(role));
}

}  // namespace ghostrank
