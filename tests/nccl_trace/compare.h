// Compares a trace of real NCCL with our schedules, call by call: the ordered messages of every
// connection. NCCL does not tell a plugin the channel of a connection, so the connections of an
// ordered pair of ranks are compared as a set.
//
// Threading: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tests/nccl_trace/trace.h"

namespace ghostrank::nccl_trace {

struct Verdict {
  std::string call;
  std::string difference;  // the first one; empty: equal
};

// The messages that our schedule sends from `rank`, in the form of a trace.
std::multimap<GroupRank, Messages> scheduled(const Schedule& schedule, GroupRank rank);

// Takes the traces of all ranks of a job, in any order. Throws std::runtime_error when they do not
// belong together.
std::vector<Verdict> compare(std::span<const RankTrace> traces);

}  // namespace ghostrank::nccl_trace
