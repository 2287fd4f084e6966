#include "profiles/planners/memory_check.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "profiles/device/compute.h"
#include "profiles/error.h"
#include "profiles/job/optimizer.h"
#include "profiles/model/model.h"
#include "profiles/planners/fsdp/mesh.h"
#include "profiles/planners/fsdp/units.h"
#include "profiles/planners/megatron/memory.h"
#include "profiles/planners/pipeline/memory.h"

namespace ghostrank {
namespace {

// Bytes per parameter, and whether the ranks shard them.
struct Held {
  double bytes = 0;
  bool sharded = false;
  double of(double sharers) const { return sharded ? bytes / sharers : bytes; }
};
struct State {
  Held weights, gradients, optimizer;
  double gathered = 0;  // bytes of the weights that are gathered at a time

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

// Bytes of the largest unit's weights when it is gathered. Expert parallelism takes the place of
// tensor parallelism for the routed experts.
double largest_unit(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  double largest = 0;
  for (const Layer& layer : spec.model->layers) {
    double numel = 0;
    for (const ParameterTensor& tensor : layer.parameters)
      numel += static_cast<double>(tensor.numel) /
               (p.ep > 1 && is_routed_expert(*spec.model, tensor) ? p.ep : p.tp);
    largest = std::max(largest, numel);
  }
  return largest * bytes_of(spec.precision.parameters);
}

State state_of(const JobSpec& spec) {
  const Framework framework = spec.parallel.framework;
  const double weight = bytes_of(spec.precision.parameters),
               gradient = bytes_of(spec.precision.gradients);
  State state;
  if (is_zero(framework)) {
    state.weights = {weight, framework == Framework::zero3};
    state.gradients = {weight, framework != Framework::zero1};
    state.optimizer = {optimizer_bytes(spec.precision), true};
  } else {
    const bool sharded = !is_replicated(framework);
    const double stored = stored_bytes(spec);
    state = {
        {stored, sharded}, {gradient, sharded}, {moments_of(spec.precision) * stored, sharded}};
  }
  // FSDP's units that are not freed after the forward pass are all there before the backward. In a
  // pipeline so are gradients, which are summed until the last backward.
  const std::string& reshard = spec.parallel.reshard;
  const bool pipeline = spec.parallel.pp > 1,
             frees = reshard == "always" || (reshard == "default" && !pipeline);
  if (state.weights.sharded)
    state.gathered =
        frees ? largest_unit(spec)
              : parameters_of(spec) / spec.parallel.ep * (weight + (pipeline ? gradient : 0));
  return state;
}

// Bytes that a transformer keeps from a forward pass to its backward pass: Megatron's count of its
// tensors with fused attention, and the logits in fp32. A lower bound, because selective
// recomputation counts as full.
double transformer_activations(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  MegatronPlan plan;
  plan.spec = &spec;
  plan.model = *spec.model->transformer;
  plan.tp = p.tp;
  plan.cp = p.cp;
  plan.ep = p.ep;
  plan.sequence_parallel = p.tp > 1;
  plan.activations = spec.precision.parameters;
  plan.tokens = static_cast<std::uint64_t>(p.micro_batch) * plan.model.sequence /
                static_cast<std::uint64_t>(p.cp);
  plan.parts = {{.layers = static_cast<int>(plan.model.layers), .embedding = true, .head = true}};
  if (p.pp > 1) {
    plan.pipeline = fsdp_pipeline(spec);
    plan.parts = split_as_torchtitan(spec, plan.model, plan.pipeline);
  }
  const double tokens = static_cast<double>(plan.tokens) / p.tp,
               hidden =
                   bytes_of(plan.activations) * tokens * static_cast<double>(plan.model.hidden),
               head = 2 * hidden + 4 * tokens * static_cast<double>(plan.model.vocabulary);
  const bool again = p.recompute != Recompute::none;
  double most = 0;
  for (int stage = 0; stage < plan.pipeline.stages; ++stage) {
    std::vector<double> kept, passing;  // by chunk
    for (int chunk = 0; chunk < plan.pipeline.chunks; ++chunk) {
      const Part& part = plan.parts[plan.pipeline.part(stage, chunk)];
      double sum = 0, largest = 0;
      for (int i = 0; i < part.layers; ++i) {
        const auto layer = static_cast<std::uint64_t>(part.first_layer + i);
        const double bytes = megatron_layer_activations(plan, plan.model.has_experts(layer));
        largest = std::max(largest, bytes);
        sum += again ? hidden : bytes;
      }
      kept.push_back(sum);
      passing.push_back(std::max(part.head ? head : 0, again ? largest : 0));
    }
    most = std::max(most, most_kept(plan.pipeline, stage, kept, passing));
  }
  return most;
}

double activations_of(const JobSpec& spec) {
  if (spec.model->transformer) return transformer_activations(spec);
  double sample = 0;
  for (const Layer& layer : spec.model->layers)
    sample += layer.kept * bytes_of(spec.precision.parameters) + layer.kept_bytes;
  return spec.parallel.micro_batch * sample;
}

bool is_counted(const JobSpec& spec) {
  return spec.model && !spec.model->measured && spec.parallel.framework != Framework::torchrec;
}

// Also false if the schedule does not allow the job's pipeline.
bool fits(const JobSpec& spec) {
  try {
    return gpu_memory(spec)->total() <= spec.device.memory_bytes;
  } catch (const Error&) {
    return false;
  }
}

// The largest micro-batch below the job's with which it fits; 0: none.
int micro_batch_that_fits(const JobSpec& spec) {
  JobSpec other = spec;
  const auto fits_with = [&](int micro_batch) {
    other.parallel.micro_batch = micro_batch;
    return fits(other);
  };
  const ParallelPlan& p = spec.parallel;
  if (p.pp > 1 && p.global_batch > 0) {
    // The memory of a pipeline depends on the number of micro-batches too, so it need not grow with
    // their size, which must divide the batch.
    for (int micro_batch = p.micro_batch - 1; micro_batch > 0; --micro_batch)
      if (p.global_batch % micro_batch == 0 && fits_with(micro_batch)) return micro_batch;
    return 0;
  }
  int fit = 0, too_large = p.micro_batch;
  while (too_large - fit > 1) {
    const int middle = fit + (too_large - fit) / 2;
    (fits_with(middle) ? fit : too_large) = middle;
  }
  return fit;
}

// A change with which the job fits, the least one first.
std::string what_fits(const JobSpec& spec, const GpuMemory& memory) {
  const int micro_batch = memory.activations > 0 ? micro_batch_that_fits(spec) : 0;
  if (micro_batch > 0) return "use parallel.micro_batch=" + std::to_string(micro_batch);
  const ParallelPlan& p = spec.parallel;
  JobSpec other = spec;
  other.parallel.recompute = Recompute::full;
  const bool recomputes = p.framework == Framework::torchtitan || p.framework == Framework::fsdp;
  if (recomputes && spec.model->transformer && p.recompute == Recompute::none && fits(other))
    return "use parallel.recompute=full";
  const State state = state_of(spec);
  const double parameters = parameters_of(spec), shared = parameters * state.sum(true),
               whole = parameters * state.sum(false) + state.gathered + memory.activations;
  if (shared == 0 || whole >= spec.device.memory_bytes) {
    other = spec;
    other.parallel.framework = Framework::fsdp;
    if (!state.weights.sharded && fits(other))
      return "use parallel.framework=zero3 or fsdp, or a device with more memory";
    other.parallel.recompute = Recompute::full;
    if (!recomputes && spec.model->transformer && fits(other))
      return "use parallel.framework=fsdp with parallel.recompute=full, or a device with more "
             "memory";
    return "use parallel.framework=torchtitan with parallel.recompute=full or more tensor-parallel "
           "ranks, or a device with more memory";
  }
  const double groups = static_cast<double>(p.tp) * p.pp * p.dp_replicate;
  const double sharers = std::ceil(shared / (spec.device.memory_bytes - whole));
  return "use cluster.nodes=" +
         std::to_string(std::llround(std::ceil(sharers * groups / spec.cluster.gpus_per_node))) +
         " or more";
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
  memory.activations = activations_of(spec);
  return memory;
}

void check_state_memory(const JobSpec& spec) {
  const double have = spec.device.memory_bytes;
  if (have <= 0 || !is_counted(spec) || spec.parallel.framework == Framework::megatron) return;
  const GpuMemory memory = *gpu_memory(spec);
  if (memory.total() <= have) return;
  throw Error(
      spec.source_of("model") + ": a rank has at least " + gigabytes(memory.total()) +
      " of weights, gradients" +
      (memory.activations > 0 ? ", optimizer state and activations" : " and optimizer state") +
      " under " + std::string(name_of(spec.parallel.framework)) + " and the device " +
      spec.device.name + " has " + gigabytes(have) + "; " + what_fits(spec, memory) +
      " (device.memory_bytes=0: no check)");
}

}  // namespace ghostrank
