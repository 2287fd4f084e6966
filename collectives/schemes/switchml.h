// SwitchML (NSDI'21) as a scheme: an all-reduce that a switch sums, slot by slot, in packets of
// integers. switch/worker.h decides which packet a worker may send when, switch/pool.h is the
// switch's side, switch/quantise.h converts floats to integers; this file makes agents of them.
//
//   worker   packet of a chunk >                          > sum   same slot, other set: next chunk
//   switch                       + of every worker > to all
//   every rank sends S and receives S, in packets that are always full
//
// A communicator's calls run one after the other, as jobs of a worker. At most 32 ranks. Exact for
// int32; float32 and bfloat16 stay within error_bound(). Results are correct only if packets
// between two parties arrive in order (FIFO): the scheme does not survive reordering.
//
// Source: the behaviour of p4lang/p4app-switchML. Threading: immutable.
#pragma once

#include <memory>

#include "collectives/agent.h"

namespace ghostrank {

struct SwitchMlOptions {
  int slots = 512;                       // slots of the communicator, each with two sets
  int elements = 256;                    // per packet: 32, 64 or 256
  Picoseconds timeout = 10'000'000'000;  // 10 ms, the source's default
};

// Throws std::invalid_argument for more than 32 ranks, or for packets or slots out of range.
std::unique_ptr<Ends> switchml_ends(int ranks, const SwitchMlOptions& options);

}  // namespace ghostrank
