#include "profiles/planners/memory_check.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "profiles/error.h"
#include "profiles/model/model.h"
#include "profiles/planners/megatron/memory.h"

namespace ghostrank {
namespace {

// Bytes per parameter, and whether the ranks share them out.
struct Held {
  double bytes = 0;
  bool sharded = false;
  double of(double sharers) const { return sharded ? bytes / sharers : bytes; }
};
struct State {
  Held weights, gradients, optimizer;
  double gathered = 0;  // bytes of the largest unit whose weights are gathered at a time

  double sum(bool sharded) const {
    double bytes = 0;
    for (const Held& held : {weights, gradients, optimizer})
      if (held.sharded == sharded) bytes += held.bytes;
    return bytes;
  }
};

double parameters_of(const JobSpec& spec) {
  return static_cast<double>(spec.model->parameters()) / spec.parallel.tp / spec.parallel.pp;
}

// Ranks that share one replica's states.
double sharers_of(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  return std::max(1.0, spec.cluster.gpus() / (static_cast<double>(p.tp) * p.pp * p.dp_replicate));
}

double largest_unit(const JobSpec& spec) {
  const bool experts = spec.model->transformer && spec.model->transformer->experts.count > 0;
  if (experts) return 0;  // units are smaller
  double largest = 0;
  for (const Layer& layer : spec.model->layers) {
    double numel = 0;
    for (const ParameterTensor& tensor : layer.parameters)
      numel += static_cast<double>(tensor.numel);
    largest = std::max(largest, numel);
  }
  return largest * bytes_of(spec.precision.parameters) / spec.parallel.tp;
}

State state_of(const JobSpec& spec) {
  const Framework framework = spec.parallel.framework;
  const double weight = bytes_of(spec.precision.parameters),
               gradient = bytes_of(spec.precision.gradients),
               moments = spec.precision.optimizer == "sgd" ? 4 : 8;
  State state;
  if (is_zero(framework)) {
    state.weights = {weight, framework == Framework::zero3};
    state.gradients = {weight, framework != Framework::zero1};
    state.optimizer = {optimizer_bytes(spec.precision), true};
  } else {
    const bool sharded = !is_replicated(framework);
    state = {{4, sharded}, {gradient, sharded}, {moments, sharded}};
  }
  if (state.weights.sharded) state.gathered = largest_unit(spec);
  return state;
}

bool is_counted(const JobSpec& spec) {
  return spec.model && !spec.model->measured && spec.parallel.framework != Framework::torchrec;
}

std::string gigabytes(double bytes) { return std::to_string(std::llround(bytes / 1e9)) + " GB"; }

}  // namespace

std::optional<GpuMemory> gpu_memory(const JobSpec& spec) {
  if (!is_counted(spec)) return std::nullopt;
  if (spec.parallel.framework == Framework::megatron) return megatron_memory(megatron_plan(spec));
  const State state = state_of(spec);
  const double parameters = parameters_of(spec), sharers = sharers_of(spec);
  GpuMemory memory;
  memory.weights = parameters * state.weights.of(sharers) + state.gathered;
  memory.gradients = parameters * state.gradients.of(sharers);
  memory.optimizer = parameters * state.optimizer.of(sharers);
  return memory;
}

void check_state_memory(const JobSpec& spec) {
  const double have = spec.device.memory_bytes;
  if (have <= 0 || !is_counted(spec) || spec.parallel.framework == Framework::megatron) return;
  const double need = gpu_memory(spec)->total();
  if (need <= have) return;
  const ParallelPlan& p = spec.parallel;
  const State state = state_of(spec);
  const double parameters = parameters_of(spec), shared = parameters * state.sum(true),
               whole = parameters * state.sum(false) + state.gathered;
  std::string remedy = "use parallel.framework=zero3 or fsdp, or a device with more memory";
  if (shared > 0 && whole < have) {
    const double groups = static_cast<double>(p.tp) * p.pp * p.dp_replicate;
    const double sharers = std::ceil(shared / (have - whole));
    remedy =
        "use cluster.nodes=" +
        std::to_string(std::llround(std::ceil(sharers * groups / spec.cluster.gpus_per_node))) +
        " or more";
  }
  throw Error(spec.source_of("model") + ": a rank has at least " + gigabytes(need) +
              " of weights, gradients and optimizer state under " +
              std::string(name_of(p.framework)) + " and the device " + spec.device.name + " has " +
              gigabytes(have) + "; " + remedy + " (device.memory_bytes=0: no check)");
}

}  // namespace ghostrank
