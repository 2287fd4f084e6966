// The library "openmpi-4.1": the algorithms of Open MPI's component "tuned" that differ from the
// textbook ones, and its choice among all of them.
//
// Units: bytes where named. Threading: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "collectives/generic/textbook.h"

namespace ghostrank {

// Open MPI's name of the algorithm that its fixed decision rules choose; empty for functions
// without rules (send_recv). `bytes` as the rules count them: the buffer for all-reduce, broadcast
// and reduce; all blocks together for reduce-scatter; one block for all-gather, all-to-all, gather
// and scatter; the mean block for all-gather-v. The other functions ignore it.
std::string_view openmpi_choice(Func func, int ranks, std::uint64_t bytes);

// The tree of an in-order binary reduce as a TreeChild (trees.h); here v is the distance from the
// last rank, counted backwards.
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
