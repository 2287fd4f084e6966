#include "profiles/planners/shared/data_parallel.h"

#include <utility>

#include "profiles/device/compute.h"
#include "profiles/error.h"
#include "profiles/model/model.h"

namespace ghostrank {

StepTimes step_times(const JobSpec& spec) {
  const Model& model = *spec.model;
  StepTimes out;
  if (model.measured) {
    for (const Layer& layer : model.layers) out.layers.push_back({layer.forward, layer.backward});
    out.optimizer = model.optimizer;
    return out;
  }
  const ComputeModel device(spec);
  for (const Layer& layer : model.layers) {
    const double flops = layer.forward_flops * spec.parallel.micro_batch;
    out.layers.push_back({device.products(flops, "the forward of " + layer.name),
                          device.products(2 * flops, "the backward of " + layer.name)});
  }
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
  Workload workload;
  workload.ranks = spec.cluster.gpus();
  workload.roles.push_back(std::move(role));
  workload.role_of.assign(workload.ranks, 0);
  workload.group_names = {"dp"};
  workload.groups.push_back({kDataParallel, world_ranks(workload.ranks)});
  workload.samples_per_iteration =
      static_cast<double>(spec.parallel.micro_batch) * static_cast<double>(workload.ranks);
  workload.flops_per_iteration = 3 * spec.model->forward_flops() * workload.samples_per_iteration;
  return workload;
}

}  // namespace ghostrank
