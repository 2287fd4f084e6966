// Workloads that are nothing but traffic: one collective per iteration, or flows between pairs.
// Each role has one program per phase (a size, a round, a fan-in); phase i of a session plays
// program i of every rank.
//
// A flow is a run of messages from one rank to another, all handed over at once; its receiver's ops
// are labelled kFlowLabel, so that a trace of them tells when each message was there.
//
// Units: counts are elements, sizes bytes. Threading: pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "profiles/workload/program.h"

namespace ghostrank {

inline constexpr std::string_view kFlowLabel = "flow";

// One collective of all ranks per phase, `count` as NCCL's arguments count (schedule.h). A
// send_recv is what nccl-tests plays: every rank sends to the next one and receives from the one
// before. The blocks of a v-variant differ: each has its count times an even draw from
// 1 - imbalance .. 1 + imbalance, the same for a seed everywhere.
struct CollectiveCall {
  std::uint64_t count = 0;
  DataType dtype = DataType::float32;
  Rank root = 0;
};
struct CollectivePhases {
  Func func = Func::all_reduce;
  int ranks = 1;
  std::vector<CollectiveCall> calls;  // by phase
  double imbalance = 0;
  std::uint64_t seed = 1;
};
Workload collective_phases(const CollectivePhases& phases);

// Two programs per distance k = 1 .. ranks-1: phase 2(k-1) sends `messages` of `bytes` from every
// rank to the one k further on, all at the same time; phase 2k-1 bounces one byte between them as
// often, and only the initiator's receives are labelled.
Workload pair_phases(int ranks, std::uint64_t bytes, int messages);

// Rank r sends to target[r], which is a permutation without a fixed point; one phase per size.
Workload permutation_phases(const std::vector<Rank>& target,
                            const std::vector<std::uint64_t>& sizes, int messages);

// A permutation that is one cycle through all ranks, the same for a seed everywhere.
std::vector<Rank> random_cycle(int ranks, std::uint64_t seed);

// Rank r and the one half the ranks away, for an even number of ranks.
std::vector<Rank> opposite(int ranks);

// One phase per fan-in f: rank 0 asks the first f of `sources` for `bytes` with a message of one
// byte each, and has them all at the end of the iteration.
Workload incast_phases(int ranks, const std::vector<Rank>& sources, const std::vector<int>& fan_ins,
                       std::uint64_t bytes);

}  // namespace ghostrank
