// Workloads of pure traffic: one collective per iteration, or flows between pairs of ranks. Each
// role has one program per phase (a size, a round or a fan-in); phase i of a session plays program
// i of every rank.
//
// A flow is a run of messages from one rank to another, all handed over at once. Its receiver's ops
// carry the label kFlowLabel, so a trace shows when each message arrived.
//
// Units: counts are elements, sizes are bytes. Threading: pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "profiles/workload/program.h"

namespace ghostrank {

inline constexpr std::string_view kFlowLabel = "flow";

// One collective per phase, of all ranks or of each of some groups at once; `count` follows NCCL's
// arguments (collectives/schedule.h). A send_recv is nccl-tests' pattern: every rank sends to the
// next rank and receives from the previous one. In a v-variant each block has its count times a
// factor drawn uniformly within `imbalance` of 1; a seed gives the same draws everywhere.
struct CollectiveCall {
  std::uint64_t count = 0;
  DataType dtype = DataType::float32;
  GroupRank root = 0;
  Reduction reduction = Reduction::sum;
  bool floats = false;  // as Op::floats
};
struct CollectivePhases {
  Func func = Func::all_reduce;
  int ranks = 1;                      // of a group
  std::vector<CollectiveCall> calls;  // by phase
  double imbalance = 0;
  std::uint64_t seed = 1;
  // Every group calls at the same time; each has `ranks` members. Empty: one, of ranks 0 on.
  std::vector<std::vector<WorldRank>> groups{};
};
Workload collective_phases(const CollectivePhases& phases);

// Two programs per distance k = 1 .. ranks-1. In phase 2(k-1) every rank sends `messages` of
// `bytes` to the rank k positions after it, all at the same time. In phase 2k-1 each such pair
// bounces one byte `messages` times; only the initiator's receives carry kFlowLabel.
Workload pair_phases(int ranks, std::uint64_t bytes, int messages);

// Rank r sends to target[r]; `target` is a permutation without a fixed point. One phase per size.
Workload permutation_phases(const VectorBy<WorldRank, WorldRank>& target,
                            const std::vector<std::uint64_t>& sizes, int messages);

// A permutation that is one cycle through all ranks; a seed gives the same one everywhere.
VectorBy<WorldRank, WorldRank> random_cycle(int ranks, std::uint64_t seed);

// Maps rank r to the rank `ranks` / 2 positions after it; `ranks` must be even.
VectorBy<WorldRank, WorldRank> opposite(int ranks);

// One phase per fan-in f: rank 0 asks each of the first f `sources` for `bytes` with a 1-byte
// message, and holds all answers at the end of the iteration.
Workload incast_phases(int ranks, const std::vector<WorldRank>& sources,
                       const std::vector<int>& fan_ins, std::uint64_t bytes);

}  // namespace ghostrank
