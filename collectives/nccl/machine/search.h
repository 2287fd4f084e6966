// NCCL's topology search: for the GPUs of one communicator on a described node, the order of the
// GPUs and the NICs of every channel, for the ring, the tree and NVLS. Derived from NCCL's source
// (2.28.9, 2.30.7); traced.h says what was recorded.
//
// The search wants as many channels as possible at the highest rate. It tries rates downwards, and
// for each rate: equal channels, then different ones; a simpler tree; farther paths; NICs that
// differ on both sides (cross-NIC). A search that takes too many steps ends with the best result so
// far. Then it splits fast channels in two, and tries higher rates for the same channels.
//
// Threading: pure functions; nccl/found.h keeps results in a table that all threads share.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collectives/nccl/machine/graphs.h"
#include "collectives/nccl/machine/machine.h"
#include "collectives/nccl/settings/split.h"

namespace ghostrank {

struct NcclSearchOptions {
  bool between = true;  // the communicator has ranks on other nodes
  int cross_nic = 2;    // NCCL_CROSS_NIC
  bool pxn = true;      // a GPU may reach a NIC through another GPU (NCCL_PXN_DISABLE=0)
  NcclVersion version = NcclVersion::v2_30;
  auto operator<=>(const NcclSearchOptions&) const = default;
};

// `gpus`: numbers of the machine's GPUs that take part, ascending. Local rank i is on gpus[i].
// Throws std::invalid_argument for a machine that is not modelled or has no such GPU.
std::shared_ptr<const NcclGraphs> nccl_search(const NcclMachine& machine, std::span<const int> gpus,
                                              const NcclSearchOptions& options);

}  // namespace ghostrank
