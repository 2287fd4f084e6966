// NCCL's choice of algorithm, protocol and number of channels for a call: the combination with the
// least time by NCCL's own model, time = latency + bytes / bandwidth. Derived from the source of
// NCCL 2.30.7 (its default tuner); traced.h says what was recorded.
//
// Not modelled: tuner plug-ins; CollNet; NVLS for all-gather and reduce-scatter, which the tuner
// does not prefer on these nodes.
//
// Units: microseconds, 10^9 bytes per second. Threading: pure functions.
#pragma once

#include <array>
#include <cstdint>

#include "collectives/nccl/machine/node.h"
#include "collectives/nccl/settings/overrides.h"
#include "collectives/nccl/settings/split.h"

namespace ghostrank {

// In NCCL's order: of two equal times the first wins.
inline constexpr std::array kNcclAlgorithms{NcclAlgorithm::tree, NcclAlgorithm::ring,
                                            NcclAlgorithm::nvls, NcclAlgorithm::nvls_tree,
                                            NcclAlgorithm::pat};

struct NcclTunerInput {
  Func func = Func::all_reduce;
  std::uint64_t bytes = 0;  // all-gather and reduce-scatter: of all ranks' blocks
  int ranks = 1;
  int nodes = 1;
  int channels = 1;  // of the communicator
  const NcclNode* node = nullptr;
  NcclOverrides overrides{};
  bool nvls = true;  // NVLS and NVLSTree are allowed: nodes of one size, a type and operator
                     // that the switch reduces
  bool pat = true;   // PAT is allowed if there is one rank per node
  bool fp8 = false;  // sums of 8-bit floats, which lose precision in long rings
  int calls_per_channel = 1;  // of all calls in the group, rounded up
};

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  Protocol protocol = Protocol::simple;
  int max_channels = 1;
  double microseconds = 0;
};

// Throws std::invalid_argument if no allowed combination fits the call, or if an override is
// invalid.
NcclChoice nccl_choose(const NcclTunerInput& input);

// Modelled time in microseconds; negative if NCCL would not consider the combination.
double nccl_time_us(const NcclTunerInput& input, NcclAlgorithm algorithm, Protocol protocol);

// The number of channels that a task of this size may use.
int nccl_max_channels(const NcclTunerInput& input, NcclAlgorithm algorithm, Protocol protocol);

// The size of a call as the tuner counts it, in bytes.
std::uint64_t nccl_tuner_bytes(const Collective& c);

}  // namespace ghostrank
