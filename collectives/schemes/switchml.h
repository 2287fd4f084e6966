// SwitchML (NSDI'21) as a scheme: an all-reduce that a switch sums up, slot by slot, in packets of
// whole numbers. Who may send what when is switch/worker.h, what the switch does is switch/pool.h,
// how floats become whole numbers is switch/quantise.h; here they become agents.
//
//   worker   packet of a chunk >                          > sum   its slot, other set: next chunk
//   switch                       + of every worker > to all
//   every rank sends S and receives S, in packets that are always full
//
// Calls of a communicator go one after the other, as jobs of a worker. Up to 32 ranks. Exact for
// int32; float32 and bfloat16 within error_bound(). Sums are right as long as packets between two
// parties keep their order (FIFO): overtaking is not survived.
//
// Source: the behaviour of p4lang/p4app-switchML. Threading: immutable.
#pragma once

#include <memory>

#include "collectives/agent.h"

namespace ghostrank {

struct SwitchMlOptions {
  int slots = 512;                       // of the communicator, each with two sets
  int elements = 256;                    // of a packet: 32, 64 or 256
  Picoseconds timeout = 10'000'000'000;  // 10 ms, as the source has it
};

// Throws std::invalid_argument for a communicator it cannot serve.
std::unique_ptr<Ends> switchml_ends(int ranks, const SwitchMlOptions& options);

}  // namespace ghostrank
