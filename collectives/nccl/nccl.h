// The libraries "nccl-2.28" and "nccl-2.30": what a call becomes once its algorithm is known, and
// the schedules made from that. Derived from NCCL's source (2.28.9, 2.30.7), not yet compared with
// a trace.
//
// A message here is one slice of a connection's FIFO, which NCCL hands to its network as one send:
// size, order and empty messages are the library's. Edges inside a node are in the schedule as
// ordinary messages; whoever plays it knows that they never meet a network.
//
// Threading: pure functions; schedules are immutable.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/nccl/environment.h"
#include "collectives/nccl/node.h"
#include "collectives/nccl/split.h"
#include "collectives/nccl/tuner.h"
#include "collectives/schedule.h"

namespace ghostrank {

// One collective call, alone in its group, ready to be played.
struct NcclPlan {
  NcclVersion version = NcclVersion::v2_30;
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclNodes nodes;
  const NcclNode* node = nullptr;
  std::shared_ptr<const NcclGraphs> graphs;  // keeps `node` alive, where it is of a dump
  NcclSettings settings;
  int channels = 1;  // of the communicator
  NcclTask task;
  NcclSplit split;

  std::uint64_t chunk_elements(std::uint64_t elements) const;  // for a channel with so many
  NcclSlices slices(std::uint64_t elements) const { return nccl_slices(algorithm, task, elements); }
  FlowControl flow() const { return nccl_flow(algorithm, task.func, task.protocol); }
  std::string name() const;  // "ring/Simple"
};

// Fills in what `comm` leaves open. Throws std::invalid_argument for what NCCL cannot do.
NcclPlan nccl_plan(NcclVersion version, NcclAlgorithm algorithm, const Collective& c,
                   const Communicator& comm);

// What the tuner is asked about a plan.
NcclTunerInput nccl_tuner_input(const NcclPlan& plan, const Communicator& comm);

// One actor of a channel: which elements of the task it moves, and in which chunks.
struct NcclLane {
  int channel = 0;
  std::uint64_t offset = 0, count = 0;
  std::uint64_t chunk = 1;
};
std::vector<NcclLane> nccl_lanes(const NcclPlan& plan);

std::unique_ptr<Schedule> nccl_ring(NcclVersion, const Collective&, const Communicator&);
std::unique_ptr<Schedule> nccl_tree(NcclVersion, const Collective&, const Communicator&);
std::unique_ptr<Schedule> nccl_pat(NcclVersion, const Collective&, const Communicator&);
std::unique_ptr<Schedule> nccl_nvls_tree(NcclVersion, const Collective&, const Communicator&);
std::unique_ptr<Schedule> nccl_p2p(NcclVersion, const Collective&, const Communicator&);

}  // namespace ghostrank
