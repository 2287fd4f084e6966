// From a call and a communicator to NCCL's plan for it: see nccl.h.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "collectives/generic/textbook.h"
#include "collectives/nccl/found.h"
#include "collectives/nccl/machine/graphs.h"
#include "collectives/nccl/nccl.h"
#include "collectives/nccl/tuner.h"

namespace ghostrank {
namespace {

constexpr int kMaxChannels = 64;
constexpr std::int64_t kNvlsChannels = 16;  // NVLS channels on Hopper

void demand(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

void demand_sense(NcclAlgorithm algorithm, const Collective& c, const Communicator& comm) {
  check_arguments(c, comm);
  demand(
      c.element_bytes == 1 || c.element_bytes == 2 || c.element_bytes == 4 || c.element_bytes == 8,
      "NCCL's types have 1, 2, 4 or 8 bytes, not " + std::to_string(c.element_bytes));
  demand(comm.channels <= kMaxChannels && comm.max_channels <= kMaxChannels,
         "NCCL has at most 64 channels");
  const bool simple_only = algorithm == NcclAlgorithm::pat || algorithm == NcclAlgorithm::nvls ||
                           algorithm == NcclAlgorithm::nvls_tree;
  demand(!simple_only || !comm.protocol || *comm.protocol == Protocol::simple,
         "this algorithm of NCCL has only the protocol Simple");
  const bool nvls = algorithm == NcclAlgorithm::nvls || algorithm == NcclAlgorithm::nvls_tree;
  demand(algorithm != NcclAlgorithm::tree || c.func == Func::all_reduce,
         "NCCL uses its tree for all-reduce only");
  demand(algorithm != NcclAlgorithm::pat || c.func == Func::all_gather ||
             c.func == Func::reduce_scatter,
         "NCCL uses PAT for all_gather and reduce_scatter only");
  demand(!nvls || c.func == Func::all_reduce, "NVLS and NVLSTree are modelled for all-reduce only");
  demand(!nvls || c.element_bytes > 1,
         "NVLink switches reduce no 8-bit types: NVLS is not for them");
}

// Chooses the fastest protocol for the algorithm and the channels it may use.
void tune(NcclPlan& plan, const Collective& c, const Communicator& comm) {
  NcclTunerInput input = nccl_tuner_input(plan, comm);
  input.overrides.algorithms.clear();  // the caller has chosen the algorithm
  plan.task.protocol = comm.protocol.value_or(Protocol::simple);
  double least = -1;
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
    if (comm.protocol || c.size < 2) continue;
    const double time = nccl_time_us(input, plan.algorithm, protocol);
    if (time < 0 || (least >= 0 && time >= least)) continue;
    least = time;
    plan.task.protocol = protocol;
  }
  demand(least >= 0 || comm.protocol || c.size < 2 || input.overrides.protocols.empty(),
         "NCCL_PROTO=" + input.overrides.protocols + " leaves no protocol for " +
             std::string(name_of(plan.algorithm)));
  plan.task.max_channels = comm.max_channels > 0
                               ? comm.max_channels
                               : nccl_max_channels(input, plan.algorithm, plan.task.protocol);
}

int channels_of(const NcclPlan& plan, const Communicator& comm) {
  const NcclSettings& settings = plan.settings;
  if (comm.channels > 0) {
    demand(settings.min_channels == 0 && settings.max_channels == 0,
           "the number of channels is given twice: as channels and in the environment");
    return comm.channels;
  }
  // NVLS has its own number, which only the CTA variables limit.
  if (plan.algorithm == NcclAlgorithm::nvls || plan.algorithm == NcclAlgorithm::nvls_tree) {
    std::int64_t own = kNvlsChannels;
    if (settings.max_ctas > 0) own = std::min(own, settings.max_ctas);
    return static_cast<int>(std::max(own, settings.min_ctas));
  }
  int channels = plan.node->channels(plan.nodes.nodes());
  if (settings.max_channels > 0)
    channels = std::min(channels, static_cast<int>(settings.max_channels));
  return std::max(channels, static_cast<int>(settings.min_channels));
}

// PAT's reduce-scatter cannot scale.
bool pat_reduces(Reduction reduction) {
  return reduction != Reduction::avg && reduction != Reduction::pre_mul_sum;
}

void check_reduction(const NcclPlan& plan, const Collective& c) {
  const bool nvls =
      plan.algorithm == NcclAlgorithm::nvls || plan.algorithm == NcclAlgorithm::nvls_tree;
  const std::string what = std::string(name_of(c.reduction)) + " of " +
                           (c.integers() ? "integers" : "floats") + " of " +
                           std::to_string(c.element_bytes) + " bytes";
  demand(!nvls || nccl_switch_reduces(c.reduction, c.element_bytes, c.integers()),
         "the NVLink switch computes no " + what + ", so NCCL has no " +
             std::string(name_of(plan.algorithm)) + " for it");
  demand(plan.algorithm != NcclAlgorithm::pat || c.func != Func::reduce_scatter ||
             pat_reduces(c.reduction),
         "PAT has no reduce_scatter that computes a " + std::string(name_of(c.reduction)));
}

void check_enabled(NcclAlgorithm algorithm, const NcclSettings& settings) {
  const bool nvls = algorithm == NcclAlgorithm::nvls || algorithm == NcclAlgorithm::nvls_tree;
  demand(!nvls || settings.nvls, "NCCL_NVLS_ENABLE=0 leaves no NVLS and no NVLSTree");
  demand(algorithm != NcclAlgorithm::pat || settings.pat, "NCCL_PAT_ENABLE=0 leaves no PAT");
}

}  // namespace

bool nccl_switch_reduces(Reduction reduction, std::uint32_t element_bytes, bool integers) {
  if (element_bytes == 1) return false;
  if (reduction == Reduction::sum) return true;
  const bool extreme = reduction == Reduction::min || reduction == Reduction::max;
  return extreme && (integers || element_bytes == 2);
}

std::uint64_t NcclPlan::chunk_elements(std::uint64_t elements) const {
  const auto heads = static_cast<int>(graphs->heads.size());
  return nccl_chunk_bytes(algorithm, task, elements, {nodes.nodes(), std::max(1, heads)}) /
         task.element_bytes;
}

std::string NcclPlan::name() const {
  return std::string(name_of(algorithm)) + '/' + std::string(name_of(task.protocol));
}

NcclTunerInput nccl_tuner_input(const NcclPlan& plan, const Communicator& comm) {
  const NcclTask& task = plan.task;
  NcclTunerInput input{
      task.func,          nccl_tuner_bytes({task.func, task.ranks, task.count, task.element_bytes}),
      task.ranks,         plan.nodes.nodes(),
      plan.channels,      plan.node,
      plan.settings.tuner};
  input.nvls = plan.settings.nvls && plan.nodes.uniform() &&
               nccl_switch_reduces(plan.reduction, task.element_bytes, plan.integers);
  input.pat =
      plan.settings.pat && (task.func != Func::reduce_scatter || pat_reduces(plan.reduction));
  input.fp8 = reduces(task.func) && task.element_bytes == 1 && !plan.integers;
  if (comm.protocol) input.overrides.protocols = name_of(*comm.protocol);
  return input;
}

NcclPlan nccl_plan(NcclVersion version, NcclAlgorithm algorithm, const Collective& c,
                   const Communicator& comm) {
  demand_sense(algorithm, c, comm);
  NcclPlan plan{version, algorithm, NcclNodes(c.size, comm.node_of)};
  plan.settings = nccl_settings(comm.environment);
  plan.graphs = nccl_graphs_of(comm, plan.nodes,
                               nccl_search_options(plan.settings, version, plan.nodes.nodes() > 1));
  plan.node = &plan.graphs->node;
  check_enabled(algorithm, plan.settings);
  check_reduction(plan, c);
  plan.channels = channels_of(plan, comm);
  plan.task = {c.func, c.size, c.count, c.element_bytes};
  plan.task.buffers = plan.settings.buffers;
  plan.reduction = reduces(c.func) ? c.reduction : Reduction::sum;
  plan.integers = c.integers();
  tune(plan, c, comm);
  if (c.size > 1) plan.split = nccl_split({&plan.task, 1}, plan.channels, version).front();
  return plan;
}

NcclPlan nccl_undecided(NcclVersion version, const Collective& c, const Communicator& comm) {
  Communicator any = comm;
  any.protocol.reset();
  any.environment.erase("NCCL_PROTO");
  NcclPlan plan = nccl_plan(version, NcclAlgorithm::ring, c, any);
  plan.settings = nccl_settings(comm.environment);
  return plan;
}

std::unique_ptr<Schedule> nccl_schedule(const Collective& c, NcclPlan plan) {
  switch (plan.algorithm) {
    case NcclAlgorithm::tree:
      return nccl_tree(c, std::move(plan));
    case NcclAlgorithm::pat:
      return nccl_pat(c, std::move(plan));
    case NcclAlgorithm::nvls:
    case NcclAlgorithm::nvls_tree:
      return nccl_nvls_tree(c, std::move(plan));
    case NcclAlgorithm::ring:
      break;
  }
  return nccl_ring(c, std::move(plan));
}

std::vector<NcclChannelPart> nccl_channel_parts(const NcclPlan& plan) {
  std::vector<NcclChannelPart> parts;
  for (int i = 0; i < plan.split.channels; ++i) {
    const std::uint64_t count = plan.split.count(i);
    parts.push_back(
        {plan.split.first + i, plan.split.offset(i), count, plan.chunk_elements(count)});
  }
  return parts;
}

}  // namespace ghostrank
