// Source-routed multicast as schemes for broadcasts: Orca, Elmo, and copies to every receiver.
//
// clang-format off
//
//   orca      root ── packet, label of the tree ──► leaf ── spine ── core ── spine ── leaf ──► agent
//             agent ── packet, label of the rack ──► leaf ──► the other members below it
//   elmo      root ── packet, a rule for every switch on the way ──► all members
//   unicast   root ── a packet ──► every member, one after the other
//
// clang-format on
//
// Switches copy packets by their labels alone. Orca's label has a fixed size, because what a rack's
// own switch needs is at a server below it, the rack's agent, through whose NIC every packet passes
// once in and once out. Elmo's header has no agents and grows with the racks. A node's other ranks
// are served over NVLink, and every rail has trees of its own (rails.h).
//
//   S: a rail's share of the tensor, p: bytes of a packet's elements, N: the other nodes
//
//   scheme    sent by the root          by an agent    received by a member
//   orca      S (1 + 20 / p)            S (1 + 4 / p)  S (1 + 4 / p), at an agent S (1 + 20 / p)
//   elmo      S (1 + header / p)                       S (1 + header / p)
//   unicast   N S                                      S
//
// Notes are runs of packets: single ones in a call of up to 1,024 on a rail, up to 32 in longer
// ones, so that few events play a large call and the wait for a run at an agent stays below a
// thousandth of it. Whoever gets a run from the root answers with a credit of one byte; the root
// has at most `outstanding` runs in flight, and its call ends with the last credit.
//
// Source: labels and rules follow the prototypes' published code (Orca: of 2020-21, before the
// paper at NSDI'22; Elmo: of 2019). Credits are ours: neither has flow control, nor any means
// against losses, so notes are reliable here. Also ours: an agent stands on the server of a rack's
// first member, and on that of its second one where the first is the root; a bit of Orca's packet
// type tells the root's leaf to give its own agent a copy; spines send packets from below down,
// too; switches do not take rules off Elmo's header. Never compared with a run of either.
// Threading: immutable.
#pragma once

#include <memory>

#include "collectives/agent.h"

namespace ghostrank {

enum class Multicast : std::uint8_t { orca, elmo, unicast };
std::string_view name_of(Multicast scheme);  // "orca"

struct MulticastOptions {
  int elements = 256;     // of a packet
  int outstanding = 512;  // runs of packets that the root has in flight
};

// Throws std::invalid_argument where switches are to copy packets and do not form a Clos network.
std::unique_ptr<Ends> multicast_ends(Multicast scheme, int ranks, const MulticastOptions& options,
                                     const Communicator& comm = {});

}  // namespace ghostrank
