// SHARP as a scheme: an all-reduce that a tree of switches sums, message by message, in the
// elements' own type. Modelled at the level of messages, because its wire format is not published.
//
//   worker ── message ──► switch of its rack ── sum ──► switch above the racks
//   worker ◄─────────────                    ◄───────── sum, to all
//
// A node's ranks first add up over NVLink (rails.h); every rail has a tree of its own. Each switch
// has a limited number of trees for streaming, either for all its communicators or for each of its
// ports. A communicator asks for its tree in its first call and keeps it; where one of the switches
// has none left, its workers reduce around a ring instead, as a library does without SHARP.
//
//   function     sent and received by a worker     around the ring
//   all-reduce   S                                 2(n-1)/n S
//
// Source: NVIDIA's documentation of SHARP's trees and quotas (streaming trees: one active per
// switch of Quantum, one per port of Quantum-2). Messages, header and ring are ours; never compared
// with SHARP. Threading: immutable.
#pragma once

#include <map>
#include <memory>

#include "collectives/agent.h"

namespace ghostrank {

struct SharpOptions {
  int trees = 1;                 // that are active at a time
  bool per_port = false;         // `trees` is per port of a switch; else per switch
  int outstanding = 512;         // messages of a worker
  std::uint64_t bytes = 32'768;  // of the elements of a message
};

// What the communicators on one switch share.
struct SharpTrees {
  int active = 0;                       // communicators with a tree
  std::map<std::int32_t, int> on_port;  // and by port
  int refused = 0;
};

// Throws std::invalid_argument for more than 1,024 workers on a rail.
std::unique_ptr<Ends> sharp_ends(int ranks, const SharpOptions& options,
                                 const Communicator& comm = {});

}  // namespace ghostrank
