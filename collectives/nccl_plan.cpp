// From what a user asks for to what NCCL would do: see nccl.h.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "collectives/nccl.h"
#include "collectives/nccl_tuner.h"
#include "collectives/textbook.h"

namespace ghostrank {
namespace {

constexpr int kMaxChannels = 64;

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
  const bool simple_only = algorithm == NcclAlgorithm::pat || algorithm == NcclAlgorithm::nvls_tree;
  demand(!simple_only || !comm.protocol || *comm.protocol == Protocol::simple,
         "this algorithm of NCCL has only the protocol Simple");
}

// The protocol that is fastest for the algorithm, and the channels that it may use.
void tune(NcclPlan& plan, const Collective& c, const Communicator& comm) {
  NcclTunerInput input{c.func,   nccl_tuner_bytes(c), c.size, plan.nodes.nodes(), plan.channels,
                       plan.node};
  plan.task.protocol = comm.protocol.value_or(Protocol::simple);
  double least = -1;
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
    if (comm.protocol || c.size < 2) continue;
    const double time = nccl_time_us(input, plan.algorithm, protocol);
    if (time < 0 || (least >= 0 && time >= least)) continue;
    least = time;
    plan.task.protocol = protocol;
  }
  plan.task.max_channels = comm.max_channels > 0
                               ? comm.max_channels
                               : nccl_max_channels(input, plan.algorithm, plan.task.protocol);
}

}  // namespace

std::uint64_t NcclPlan::chunk_elements(std::uint64_t elements) const {
  const int per_node = nodes.ranks_per_node();
  return nccl_chunk_bytes(algorithm, task, elements, {nodes.nodes(), per_node, per_node}) /
         task.element_bytes;
}

NcclPlan nccl_plan(NcclVersion version, NcclAlgorithm algorithm, const Collective& c,
                   const Communicator& comm) {
  demand_sense(algorithm, c, comm);
  NcclPlan plan{version, algorithm, NcclNodes(c.size, comm.node_of)};
  plan.node = &nccl_node(comm.node, plan.nodes.ranks_per_node());
  plan.channels = comm.channels > 0 ? comm.channels : plan.node->channels();
  plan.task = {c.func, c.size, c.count, c.element_bytes};
  tune(plan, c, comm);
  if (c.size > 1) plan.split = nccl_split({&plan.task, 1}, plan.channels, version).front();
  return plan;
}

std::vector<NcclLane> nccl_lanes(const NcclPlan& plan) {
  std::vector<NcclLane> lanes;
  for (int i = 0; i < plan.split.channels; ++i) {
    const std::uint64_t count = plan.split.count(i);
    lanes.push_back(
        {plan.split.first + i, plan.split.offset(i), count, plan.chunk_elements(count)});
  }
  return lanes;
}

}  // namespace ghostrank
