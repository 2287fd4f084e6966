// The library "openmpi-4.1": collectives of Open MPI's component "tuned" where they differ from the
// textbook ones, and its choice among them.
//
// Units: bytes where named. Threading: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "collectives/generic/textbook.h"

namespace ghostrank {

// The algorithm that the fixed decision rules take, by Open MPI's name for it; empty for functions
// without rules (send_recv). `bytes` as the rules count them: all-reduce, broadcast and reduce the
// buffer, reduce-scatter all blocks together, all-gather, all-to-all, gather and scatter one block,
// all-gather-v the mean block; the others do not look at it.
std::string_view openmpi_choice(Func func, int ranks, std::uint64_t bytes);

// The tree of an in-order binary reduce as a TreeChild (trees.h), where v is the distance from the
// last rank, backwards.
int in_order_child(int n, int v, int i);

extern const Form kOpenMpiRingAllReduce, kOpenMpiLinearAllReduce, kOpenMpiNeighborExchange,
    kOpenMpiLinearAllToAll;                                          // openmpi/forms.cpp
extern const Form kOpenMpiRabenseifner, kOpenMpiRabenseifnerReduce;  // openmpi/rabenseifner.cpp
extern const Form kOpenMpiLinearReduce, kOpenMpiInOrderReduce,
    kOpenMpiButterfly;  // openmpi/reduce.cpp
extern const Form kOpenMpiSplitBinary, kOpenMpiScatterAllGather,
    kOpenMpiScatterRing;  // openmpi/broadcast.cpp
extern const Form kOpenMpiLinearBarrier, kOpenMpiDoublingBarrier, kOpenMpiTreeBarrier,
    kOpenMpiSignalledGather, kOpenMpiGatherV, kOpenMpiLinearAllToAllV;  // openmpi/rooted.cpp

}  // namespace ghostrank
