// A trace of real NCCL held against our schedules, call by call: the ordered messages of every
// connection. NCCL does not tell a plugin for which channel a connection is, so the connections of
// an ordered pair of ranks are compared as a set.
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
  std::string difference;  // the first; empty: none
};

// What our schedule sends as `rank` in a call, as a trace has it.
std::multimap<Rank, Messages> scheduled(const Schedule& schedule, Rank rank);

// Traces of all ranks of a job, in any order. Throws std::runtime_error where they do not belong
// together.
std::vector<Verdict> compare(std::span<const RankTrace> traces);

}  // namespace ghostrank::nccl_trace
