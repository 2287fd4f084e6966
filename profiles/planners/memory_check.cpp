#include "profiles/planners/memory_check.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "profiles/error.h"
#include "profiles/model/model.h"

namespace ghostrank {
namespace {

struct State {
  double whole = 0, shared = 0;  // bytes: per rank; divided among the ranks that shard
};

State state_of(const JobSpec& spec) {
  const Framework framework = spec.parallel.framework;
  const double parameters =
      static_cast<double>(spec.model->parameters()) / spec.parallel.tp / spec.parallel.pp;
  const double weight = bytes_of(spec.precision.parameters),
               gradient = bytes_of(spec.precision.gradients),
               moments = spec.precision.optimizer == "sgd" ? 4 : 8,
               master = spec.precision.parameters == DataType::float32 ? 0 : 4;
  double whole = 0, shared = 0;  // per parameter
  if (is_replicated(framework)) {
    whole = 4 + gradient + moments;
  } else if (!is_zero(framework)) {
    shared = 4 + gradient + moments;
  } else {
    whole = framework == Framework::zero1 ? 2 * weight : framework == Framework::zero2 ? weight : 0;
    shared = 2 * weight + master + moments - whole;
  }
  State state{whole * parameters, shared * parameters};
  if (whole > 0) return state;
  double largest = 0;
  for (const Layer& layer : spec.model->layers) {
    double numel = 0;
    for (const ParameterTensor& tensor : layer.parameters)
      numel += static_cast<double>(tensor.numel);
    largest = std::max(largest, numel);
  }
  const bool experts = spec.model->transformer && spec.model->transformer->experts.count > 0;
  // with experts, units are smaller
  if (!experts) state.whole = largest * weight / spec.parallel.tp;
  return state;
}

std::string gigabytes(double bytes) { return std::to_string(std::llround(bytes / 1e9)) + " GB"; }

}  // namespace

void check_state_memory(const JobSpec& spec) {
  const double have = spec.device.memory_bytes;
  const bool checked_by_planner = spec.parallel.framework == Framework::megatron ||
                                  spec.parallel.framework == Framework::torchrec;
  if (have <= 0 || spec.model->measured || checked_by_planner) return;
  const ParallelPlan& p = spec.parallel;
  const double groups = static_cast<double>(p.tp) * p.pp * p.dp_replicate;
  const State state = state_of(spec);
  const double need = state.whole + state.shared / std::max(1.0, spec.cluster.gpus() / groups);
  if (need <= have) return;
  std::string remedy = "use parallel.framework=zero3 or fsdp, or a device with more memory";
  if (state.shared > 0 && state.whole < have) {
    const double sharers = std::ceil(state.shared / (have - state.whole));
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
