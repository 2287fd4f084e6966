// The libraries "nccl-2.28" and "nccl-2.30": the plan of a call whose algorithm is known, and the
// schedules made from the plan. Derived from NCCL's source (2.28.9, 2.30.7); traced.h says what was
// compared with recordings.
//
// A message here is one slice of a connection's FIFO, which NCCL hands to its network as one send:
// its size, the order and the empty messages are NCCL's. A schedule contains edges inside a node as
// ordinary messages; its player knows that they never enter a network.
//
// Threading: pure functions; schedules are immutable.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/nccl/environment.h"
#include "collectives/nccl/machine/node.h"
#include "collectives/nccl/settings/split.h"
#include "collectives/nccl/tuner.h"
#include "collectives/schedule.h"

namespace ghostrank {

// The plan of one collective call that is alone in its group.
struct NcclPlan {
  NcclVersion version = NcclVersion::v2_30;
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclNodes nodes;
  const NcclNode* node = nullptr;
  std::shared_ptr<const NcclGraphs> graphs;  // holds `node`
  NcclSettings settings;
  Reduction reduction = Reduction::sum;
  bool integers = false;
  int channels = 1;  // of the communicator
  NcclTask task;
  NcclSplit split;

  // Elements of a chunk, for a channel that holds `elements` elements.
  std::uint64_t chunk_elements(std::uint64_t elements) const;
  NcclSlices slices(std::uint64_t elements) const { return nccl_slices(algorithm, task, elements); }
  FlowControl flow_control() const {
    return nccl_flow_control(algorithm, task.func, task.protocol);
  }
  std::string name() const;  // "ring/Simple"
};

// Fills in the choices that `comm` leaves open, for a call that is alone. Throws
// std::invalid_argument for a call that NCCL, or this algorithm of NCCL, cannot serve.
NcclPlan nccl_plan(NcclVersion version, NcclAlgorithm algorithm, const Collective& c,
                   const Communicator& comm);

// The plan of a call before the tuner chooses algorithm and protocol: the ring's, made as if
// NCCL_PROTO were not set.
NcclPlan nccl_undecided(NcclVersion version, const Collective& c, const Communicator& comm);

// Whether NVLS and NVLSTree support the operator and type. The NVLink switch sums all types wider
// than a byte, and computes min and max of integers and of 2-byte floats. It computes no averages,
// for which NCCL scales the data first.
bool nccl_switch_reduces(Reduction reduction, std::uint32_t element_bytes, bool integers);

// The tuner's input for a plan.
NcclTunerInput nccl_tuner_input(const NcclPlan& plan, const Communicator& comm);

// One channel's part of a task: the elements [offset, offset + count) of the task, moved in chunks
// of `chunk` elements.
struct NcclChannelPart {
  int channel = 0;
  std::uint64_t offset = 0, count = 0;
  std::uint64_t chunk = 1;
};
std::vector<NcclChannelPart> nccl_channel_parts(const NcclPlan& plan);
// Schedule::nic() of a ring's messages.
int nccl_nic_of_ring(const NcclPlan& plan, GroupRank from, GroupRank to, int channel, Way way);

// The schedule of a call's plan, by the plan's algorithm. Throws std::invalid_argument for a
// communicator that the algorithm is not for.
std::unique_ptr<Schedule> nccl_schedule(const Collective& c, NcclPlan plan);
std::unique_ptr<Schedule> nccl_ring(const Collective& c, NcclPlan plan);
std::unique_ptr<Schedule> nccl_tree(const Collective& c, NcclPlan plan);
std::unique_ptr<Schedule> nccl_pat(const Collective& c, NcclPlan plan);
std::unique_ptr<Schedule> nccl_nvls_tree(const Collective& c, NcclPlan plan);  // and NVLS

// Schedules of calls that consist of several operations of NCCL. Throw std::invalid_argument for a
// call or communicator that NCCL cannot serve.
std::unique_ptr<Schedule> nccl_p2p(NcclVersion, const Collective&, const Communicator&);
std::unique_ptr<Schedule> nccl_broadcasts(NcclVersion, const Collective&, const Communicator&);

}  // namespace ghostrank
