// How NCCL chooses: for a call, the algorithm, the protocol and the number of channels with the
// least time by its own model, time = latency + bytes / bandwidth. Derived from the source of NCCL
// 2.30.7 (its default tuner, Intel hosts), not yet compared with a trace.
//
// What is not modelled: tuner plugins, CollNet and NVLS inside one node, the penalty for 8-bit
// floats on rings of more than 8 ranks. The bandwidth of an NVLS graph is an estimate.
//
// Units: microseconds, 10^9 bytes per second. Threading: pure functions.
#pragma once

#include <array>
#include <cstdint>

#include "collectives/nccl/node.h"
#include "collectives/nccl/overrides.h"
#include "collectives/nccl/split.h"

namespace ghostrank {

inline constexpr std::array kNcclAlgorithms{NcclAlgorithm::tree, NcclAlgorithm::ring,
                                            NcclAlgorithm::nvls_tree, NcclAlgorithm::pat};

struct NcclTunerInput {
  Func func = Func::all_reduce;
  std::uint64_t bytes = 0;  // all-gather and reduce-scatter: of all ranks together
  int ranks = 1;
  int nodes = 1;
  int channels = 1;  // of the communicator
  const NcclNode* node = nullptr;
  NcclOverrides overrides{};
  bool nvls = true;  // NVLSTree may be used where the node has it: nodes of one size, no 8-bit type
  bool pat = true;   // PAT may be used where there is one rank per node
};

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  Protocol protocol = Protocol::simple;
  int max_channels = 1;
  double microseconds = 0;
};

// Throws std::invalid_argument when nothing that is allowed fits the call, or for an override that
// is none.
NcclChoice nccl_choose(const NcclTunerInput& input);

// Modelled time; negative where the library would not consider the combination.
double nccl_time_us(const NcclTunerInput& input, NcclAlgorithm algorithm, Protocol protocol);

// The channels that a task of this size may use.
int nccl_max_channels(const NcclTunerInput& input, NcclAlgorithm algorithm, Protocol protocol);

// The call's size as the tuner counts it.
std::uint64_t nccl_tuner_bytes(const Collective& c);

}  // namespace ghostrank
