// Compares what NCCL says of itself (a log, a graph dump) with what is played here: per
// communicator its graphs, channels, rings and trees, per call the algorithm, protocol and
// channels.
//
// Ranks that the log does not place are taken to follow node by node, and their GPUs to be the
// node's first ones. Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "collectives/nccl/machine/graphs.h"
#include "collectives/schedule.h"
#include "tools/nccl/log.h"

namespace ghostrank {

struct NcclFinding {
  std::string what;       // "rings", "AllReduce of 4,194,304 float sum"
  std::string log, here;  // what NCCL says, and what is played
  bool same = false;
  std::string note{};  // why it was not compared; then `same` means nothing
  std::uint64_t times = 1;
  bool compared() const { return note.empty(); }
};

struct NcclCommFindings {
  std::string name;
  std::string where;  // "16 ranks on 2 nodes"
  std::vector<NcclFinding> communicator, calls;
};

struct NcclFindings {
  std::string library;  // "nccl-2.28"
  std::vector<NcclCommFindings> comms;
  std::uint64_t same = 0, differ = 0, not_compared = 0;
};

// Fills in the numbers of findings.
void count_nccl_findings(NcclFindings& findings);

// `node`: what the user says of the nodes (its `node`, `machine` or `graphs`, and `environment`).
NcclFindings check_nccl_log(const NcclLog& log, const std::string& library,
                            const Communicator& node);

// A graph dump of a whole node against the search on the described one.
NcclFindings check_nccl_graphs(const NcclGraphs& dump, const std::string& library,
                               const Communicator& node);

// "nccl-2.28" for "2.28.9", "nccl-2.30" for "2.29.7" too. Throws Error(usage) for a version that is
// not played.
std::string nccl_library_of(const std::string& version);

}  // namespace ghostrank
