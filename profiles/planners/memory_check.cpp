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
#include "profiles/planners/kfac/kfac.h"
#include "profiles/planners/megatron/memory.h"
#include "profiles/planners/pipeline/memory.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/planners/shared/tied_table.h"
#include "profiles/planners/zero.h"

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

  double sum(bool sharded) const {
    double bytes = 0;
    for (const Held& held : {weights, gradients, optimizer})
      if (held.sharded == sharded) bytes += held.bytes;
    return bytes;
  }
};

// Ranks that share one replica's states.
double sharers_of(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  return std::max(1.0, spec.cluster.gpus() / (static_cast<double>(p.tp) * p.pp * p.dp_replicate));
}

// Elements of a stage's parameters.
struct Elements {
  double sharded = 0;  // of the ranks that share them
  // Of one rank, when units are gathered: all, and the largest. Expert parallelism takes the place
  // of tensor parallelism for the routed experts.
  double gathered = 0, largest = 0;
  // Likewise of the unit that stays from the embeddings to a head with their table.
  double tied = 0;
};

Elements elements_of(const JobSpec& spec, const std::vector<std::vector<std::size_t>>& chunks) {
  const ParallelPlan& p = spec.parallel;
  Elements out;
  const bool tied = head_has_embedding(*spec.model);
  for (const std::vector<std::size_t>& chunk : chunks)
    for (const std::size_t layer : chunk) {
      double unit = 0;
      for (const ParameterTensor& tensor : spec.model->layers[layer].parameters) {
        const auto numel = static_cast<double>(tensor.numel);
        out.sharded += numel / p.tp;
        unit += numel / (p.ep > 1 && is_routed_expert(*spec.model, tensor) ? p.ep : p.tp);
      }
      out.gathered += unit;
      if (tied && (layer == 0 || layer + 1 == spec.model->layers.size()))
        out.tied += unit;
      else
        out.largest = std::max(out.largest, unit);
    }
  return out;
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
    // FSDP casts the shards of reduced gradients to the stored weights' type. DDP has them in its
    // buckets, too. PHub's servers keep the momentum.
    const bool sharded = !is_replicated(framework);
    const double stored = stored_bytes(spec),
                 moments = framework == Framework::phub ? 0 : moments_of(spec.precision),
                 copies = copies_gradients(spec) && !spec.parallel.bucket_views ? 2 : 1;
    state = {{stored, sharded},
             {sharded ? stored : copies * gradient, sharded},
             {moments * stored, sharded}};
  }
  return state;
}

// Bytes of the weights that are gathered at a time: under ZeRO those that its plan keeps. FSDP's
// units that are not freed after the forward pass are all there before the backward. In a pipeline
// a backward frees none, and gradients are summed until the last one.
double gathered_bytes(const JobSpec& spec, const Elements& elements) {
  const double weight = bytes_of(spec.precision.parameters),
               gradient = bytes_of(spec.precision.gradients);
  if (spec.parallel.framework == Framework::zero3)
    return weight * std::max(elements.largest, static_cast<double>(most_gathered(spec)));
  const std::string& reshard = spec.parallel.reshard;
  const bool pipeline = spec.parallel.pp > 1, frees = !pipeline && reshard != "never";
  return frees ? (elements.largest + elements.tied) * weight
               : elements.gathered * (weight + (pipeline ? gradient : 0));
}

// Bytes that a transformer keeps from a forward pass to its backward pass: Megatron's count of its
// tensors with fused attention, and the logits in fp32. A lower bound, because selective
// recomputation counts as full.
double transformer_activations(const JobSpec& spec, const Pipeline& pipeline, int stage) {
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
  plan.pipeline = pipeline;
  if (pipeline.stages > 1) plan.parts = split_as_torchtitan(spec, plan.model, pipeline);
  const double tokens = static_cast<double>(plan.tokens) / p.tp,
               hidden =
                   bytes_of(plan.activations) * tokens * static_cast<double>(plan.model.hidden),
               head = 2 * hidden + 4 * tokens * static_cast<double>(plan.model.vocabulary);
  const bool again = p.recompute != Recompute::none;
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
  return most_kept(plan.pipeline, stage, kept, passing);
}

double activations_of(const JobSpec& spec, const Pipeline& pipeline, int stage) {
  if (spec.model->transformer) return transformer_activations(spec, pipeline, stage);
  double sample = 0;
  for (const Layer& layer : spec.model->layers)
    sample += layer.kept * bytes_of(spec.precision.parameters) + layer.kept_bytes;
  return spec.parallel.micro_batch * sample;
}

// Of a rank of the fullest stage.
struct StageMemory {
  double parameters = 0;  // elements, of the ranks that share them
  double gathered = 0;    // bytes, part of the weights
  GpuMemory memory;
};

StageMemory fullest_stage(const JobSpec& spec) {
  const State state = state_of(spec);
  const double sharers = sharers_of(spec);
  const bool stages = spec.parallel.pp > 1 && spec.model->transformer;
  const Pipeline pipeline = stages ? fsdp_pipeline(spec) : Pipeline();
  StageMemory fullest;
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    const Elements elements = elements_of(spec, fsdp_chunks(spec, pipeline, stage));
    StageMemory here{elements.sharded, state.weights.sharded ? gathered_bytes(spec, elements) : 0};
    here.memory.weights = here.parameters * state.weights.of(sharers) + here.gathered;
    here.memory.gradients = here.parameters * state.gradients.of(sharers);
    here.memory.optimizer = here.parameters * state.optimizer.of(sharers);
    if (spec.parallel.framework == Framework::kfac)
      here.memory.optimizer += second_order_bytes(spec);
    here.memory.activations = activations_of(spec, pipeline, stage);
    if (here.memory.total() > fullest.memory.total()) fullest = here;
  }
  return fullest;
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

// Where the shards of data parallelism leave too much: a framework that splits the model's layers.
std::string with_split_layers(const JobSpec& spec) {
  const std::string more_memory = "a device with more memory";
  const auto& model = spec.model->transformer;
  if (!model || spec.model->architecture == "bert") return "use " + more_memory;
  const bool by_torchtitan =
      spec.model->architecture == "llama" && !model->is_latent() && !model->bias && model->mtp == 0;
  const Framework splits = by_torchtitan ? Framework::torchtitan : Framework::megatron;
  const ParallelPlan& p = spec.parallel;
  return "use " +
         (p.framework == splits ? ""
                                : "parallel.framework=" + std::string(name_of(splits)) + " with ") +
         (p.recompute == Recompute::full ? "" : "parallel.recompute=full and ") +
         "more tensor-parallel ranks, or " + more_memory;
}

// A change with which the job fits, the least one first.
std::string what_fits(const JobSpec& spec, const StageMemory& fullest) {
  JobSpec other = spec;
  other.parallel.bucket_views = true;
  if (copies_gradients(spec) && fits(other)) return "use parallel.gradient_as_bucket_view=true";
  other = spec;
  other.parallel.reshard = "always";
  if (fits(other)) return "use parallel.reshard_after_forward=always";
  const int micro_batch = fullest.memory.activations > 0 ? micro_batch_that_fits(spec) : 0;
  if (micro_batch > 0) return "use parallel.micro_batch=" + std::to_string(micro_batch);
  const ParallelPlan& p = spec.parallel;
  other = spec;
  other.parallel.recompute = Recompute::full;
  const bool recomputes = p.framework == Framework::torchtitan || p.framework == Framework::fsdp;
  if (recomputes && spec.model->transformer && p.recompute == Recompute::none && fits(other))
    return "use parallel.recompute=full";
  const State state = state_of(spec);
  const double shared = fullest.parameters * state.sum(true),
               whole = fullest.parameters * state.sum(false) + fullest.gathered +
                       fullest.memory.activations;
  if (shared == 0 || whole >= spec.device.memory_bytes) {
    other = spec;
    other.parallel.framework = Framework::fsdp;
    if (!state.weights.sharded && fits(other))
      return "use parallel.framework=zero3 or fsdp, or a device with more memory";
    other.parallel.recompute = Recompute::full;
    if (!recomputes && spec.model->transformer && fits(other))
      return "use parallel.framework=fsdp with parallel.recompute=full, or a device with more "
             "memory";
    return with_split_layers(spec);
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
  return fullest_stage(spec).memory;
}

void check_state_memory(const JobSpec& spec) {
  const double have = spec.device.memory_bytes;
  if (have <= 0 || !is_counted(spec) || spec.parallel.framework == Framework::megatron) return;
  const StageMemory fullest = fullest_stage(spec);
  const GpuMemory& memory = fullest.memory;
  if (memory.total() <= have) return;
  throw Error(
      spec.source_of("model") + ": a rank has at least " + gigabytes(memory.total()) +
      " of weights, gradients" +
      (memory.activations > 0 ? ", optimizer state and activations" : " and optimizer state") +
      " under " + std::string(name_of(spec.parallel.framework)) + " and the device " +
      spec.device.name + " has " + gigabytes(have) + "; " + what_fits(spec, fullest) +
      " (device.memory_bytes=0: no check)");
}

}  // namespace ghostrank
