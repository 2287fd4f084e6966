// SwitchML (NSDI'21) as a scheme: switches sum packets of integers, slot by slot.
// switch/window.h decides which packet a worker may send when, switch/compiled/pool.h is a switch's
// side, switch/quantise.h converts floats to integers; switchml/ makes agents of them.
//
//   worker   packet of a chunk >                          > sum   same slot, other set: next chunk
//   switch                       + of every worker > to all
//
// A node's ranks first add up over NVLink, so that a worker speaks for a node on each of its rails
// (rails.h). Beyond 32 workers a switch in every rack of at most 32 sums for one above the racks,
// up to 1,024 workers. n: nodes; S: bytes of a rail's share of the whole buffer; c: credits, of 12
// bytes for each packet of elements.
//
//   function          up from a worker         down to a worker
//   all-reduce        S                        S
//   reduce-scatter    S                        S/n, and c for the rest
//   all-gather        S/n, and c for the rest  (n-1)/n S, and c for its own
//   broadcast         S from the root, else c  S, and c to the root
//   reduce            S                        S to the root, else c
//
// A communicator's calls run one after the other, as jobs of a worker. Exact for int32; floats stay
// within error_bound(). All-gather and broadcast move any type as it is. Modelled switches are
// guarded against packets out of order (switch/compiled/pool.h). Without the guard, as on a Tofino,
// results are correct only if packets between two parties arrive in order (FIFO).
//
// Source: the behaviour of p4lang/p4app-switchML for all-reduce; two levels after its authors'
// simulator; the other functions are ours. Threading: immutable.
#pragma once

#include <memory>

#include "collectives/agent.h"

namespace ghostrank {

struct SwitchMlOptions {
  int slots = 512;                       // slots of the communicator, each with two sets
  int elements = 256;                    // per packet: 32, 64 or 256
  Picoseconds timeout = 10'000'000'000;  // 10 ms, the source's default
  int first_slot = 0;                    // as the packets number them
  double packet_rate = 0;                // packets per second that a switch takes; 0: unlimited
  // Switches tell old packets by their numbers (switch/compiled/pool.h). Workers then agree on how
  // to go on when one has restarted or stays away (switchml/agreement.h).
  bool guard = true;
  // Workers give up a switch that none of them has heard from for this long, and sum around a ring
  // (switchml/ring.h), for good; 0: they never do.
  Picoseconds fallback = 1'000'000'000'000;
};

// Throws std::invalid_argument for more than 1,024 workers on a rail, or for packets or slots out
// of range.
std::unique_ptr<Ends> switchml_ends(int ranks, const SwitchMlOptions& options,
                                    const Communicator& comm = {});

}  // namespace ghostrank
