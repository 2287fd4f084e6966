#include "profiles/planners/shared/data_parallel.h"

#include <algorithm>
#include <utility>

#include "profiles/device/compute.h"
#include "profiles/device/kernels/eager.h"
#include "profiles/error.h"
#include "profiles/model/model.h"

namespace ghostrank {

namespace {

// Times of each layer's kernels and of copies out of buckets. The host runs ahead of the GPU, so it
// holds the GPU up only where its launches of a whole step take longer than the kernels.
StepTimes times_by_kernels(const JobSpec& spec, const ComputeModel& device) {
  const Transformer& m = *spec.model->transformer;
  EagerShape shape;
  shape.stored = is_replicated(spec.parallel.framework) ? stored_bytes(spec)
                                                        : bytes_of(spec.precision.parameters);
  shape.merged_qkv = spec.model->architecture == "gpt2";
  shape.compiled = spec.parallel.compiled;
  LayerShape& layer = shape.layer;
  layer.tokens = layer.own_tokens =
      m.sequence * static_cast<std::uint64_t>(spec.parallel.micro_batch);
  layer.hidden = m.hidden;
  layer.query = m.query_width();
  layer.key = m.key_width();
  layer.ffn = m.ffn;
  layer.heads = m.heads;
  layer.head_width = m.head_width;
  layer.queries = layer.keys = m.sequence;
  layer.gated = m.gated;
  layer.bias = m.bias;
  layer.dropout = m.dropout;
  layer.rotary = m.rotary;
  layer.element = bytes_of(spec.precision.parameters);
  const KernelModel& kernels = *device.kernels();
  std::vector<KernelTimes> parts(spec.model->layers.size(), eager_layer(kernels, shape));
  parts.front() =
      eager_embedding(kernels, shape, m.vocabulary, m.learned_positions ? m.positions : 0);
  parts.back() = eager_head(kernels, shape, m.vocabulary);
  // A kernel for each tensor: DDP's hooks multiply a gradient into its bucket while the backward
  // goes on, and copy it back when the bucket has been reduced.
  std::vector<Kernels> copies;
  if (copies_gradients(spec))
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (const ParameterTensor& tensor : spec.model->layers[i].parameters) {
        copies.push_back(kernels.memory(2 * shape.stored * static_cast<double>(tensor.numel)));
        parts[i].weight += copies.back();
      }
  if (spec.parallel.bucket_views) copies.clear();
  Kernels all;
  for (const KernelTimes& part : parts) all += part.forward + part.input + part.weight;
  for (const Kernels& copy : copies) all += copy;
  const bool waits = device.on_host(all) > device.on_device(all, "a step");
  const auto time = [&](const Kernels& some) {
    const Picoseconds busy = device.on_device(some, "a layer");
    return waits ? std::max(busy, device.on_host(some)) : busy;
  };
  StepTimes times;
  for (const KernelTimes& part : parts)
    times.layers.push_back({time(part.forward), time(part.input + part.weight)});
  for (const Kernels& copy : copies) times.copies.push_back(time(copy));
  return times;
}

StepTimes times_by_flops(const JobSpec& spec, const ComputeModel& device) {
  StepTimes times;
  for (const Layer& layer : spec.model->layers) {
    const double flops = layer.forward_flops * spec.parallel.micro_batch;
    times.layers.push_back({device.products(flops, "the forward of " + layer.name),
                            device.products(2 * flops, "the backward of " + layer.name)});
  }
  return times;
}

}  // namespace

bool copies_gradients(const JobSpec& spec) {
  return spec.parallel.framework == Framework::ddp && spec.cluster.gpus() > 1;
}

StepTimes step_times(const JobSpec& spec) {
  const Model& model = *spec.model;
  if (model.measured) {
    StepTimes out;
    for (const Layer& layer : model.layers) out.layers.push_back({layer.forward, layer.backward});
    out.optimizer = model.optimizer;
    return out;
  }
  const ComputeModel device(spec);
  const bool dense = model.transformer && model.transformer->experts.count == 0;
  StepTimes out =
      device.kernels() && dense ? times_by_kernels(spec, device) : times_by_flops(spec, device);
  out.optimizer = device.optimizer(static_cast<double>(model.parameters()));
  return out;
}

void check_data_parallel(const JobSpec& spec) {
  const int gpus = spec.cluster.gpus(), dp = spec.parallel.dp;
  if (dp == 0 || dp == gpus) return;
  std::string legal = std::to_string(gpus);
  if (const int nodes = dp / spec.cluster.gpus_per_node, per_node = spec.cluster.gpus_per_node;
      nodes * per_node == dp)
    legal += ", or cluster.nodes=" + std::to_string(nodes);
  throw Error(spec.source_of("parallel.dp") + ": parallel.dp is " + std::to_string(dp) +
              " but the cluster has " + std::to_string(gpus) + " GPUs; use parallel.dp=" + legal);
}

Workload data_parallel_workload(const JobSpec& spec, Role role) {
  std::vector<Role> roles;
  roles.push_back(std::move(role));
  return data_parallel_roles(spec, std::move(roles));
}

Workload data_parallel_roles(const JobSpec& spec, std::vector<Role> roles) {
  Workload workload;
  workload.ranks = spec.cluster.gpus();
  for (const WorldRank rank : each<WorldRank>(workload.ranks))
    workload.role_of.push_back(static_cast<std::uint16_t>(rank.index() % roles.size()));
  workload.roles = std::move(roles);
  workload.group_names = {"dp"};
  workload.groups.push_back({kDataParallel, world_ranks(workload.ranks)});
  workload.samples_per_iteration =
      static_cast<double>(spec.parallel.micro_batch) * static_cast<double>(workload.ranks);
  workload.flops_per_iteration = 3 * spec.model->forward_flops() * workload.samples_per_iteration;
  return workload;
}

}  // namespace ghostrank
