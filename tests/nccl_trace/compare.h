// Compares a trace of real NCCL with our schedules, launch by launch: the ordered messages of every
// connection. NCCL does not tell a plugin the channel of a connection, so the connections of an
// ordered pair of ranks are compared as a set.
//
// Threading: pure functions.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/nccl/machine/machine.h"
#include "tests/nccl_trace/trace.h"

namespace ghostrank::nccl_trace {

struct Verdict {
  std::string mark;
  std::string difference;  // the first one; empty: equal
};

// The messages that our schedules of a launch send from `rank`, in the form of a trace. Throws
// std::invalid_argument for a launch that we cannot play.
std::multimap<Peer, Messages> scheduled(const Launch& launch, GroupRank rank);

// Takes the traces of all ranks of a job, in any order. `machine`: the node of each rank, null for
// a described one with one GPU. Throws std::runtime_error when the traces do not belong together.
std::vector<Verdict> compare(std::span<const RankTrace> traces,
                             std::shared_ptr<const NcclMachine> machine = nullptr);

}  // namespace ghostrank::nccl_trace
