// Orca's labels: what the controller writes into them, and where switches send a packet by them.
//
//   leaf, from a server    up to leaf_us, and to its agent if the packet's type says so
//   spine, from a leaf     up to spine_us, and down as below, but not back
//   core                   down to core_ds
//   spine, from a core     down link i if common_ds has it, or if the Bloom filter has it and the
//                          spine holds no entry of this session against it
//   leaf, from a spine     to its agent
//   leaf, from its agent   to the servers of the rack's label
//
// A label has the prototype's 152 bits (19 bytes), or more where a switch has more than 24 ports
// each way or there are more than 48 pods; that of a rack has 24, or the leaf's ports. So its size
// depends on the fabric, never on the group.
//
// A link's bits of the Bloom filter are crc16 and crc32 of its number, modulo 32 (the prototype's
// 256 would leave most links without any bit). Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schemes/multicast/clos.h"

namespace ghostrank::multicast {

struct OrcaLabel {
  bool own_rack = false;  // of the root; a bit of the packet's type
  std::vector<bool> leaf_us, spine_us, common_ds, core_ds;
  std::uint32_t bloom = 0;
};

// Entries that a spine holds for a session, by pod: down links that the filter has by mistake.
using SessionState = std::vector<std::vector<int>>;

struct OrcaTree {
  OrcaLabel label;
  SessionState suppressed;
};

// Of a session whose root is below leaf `source`, to the leaves in `to`, ascending. Its packets
// take spine and core number `way`, modulo their counts.
OrcaTree orca_tree(const Clos& clos, int source, const std::vector<int>& to, int way);

// The leaves whose agents get a copy of a packet of that root, one entry for each copy.
std::vector<int> reached(const Clos& clos, int source, const OrcaLabel& label,
                         const SessionState& state);

// The bits of the Bloom filter of the link to a leaf.
std::uint32_t bloom_of(int leaf);

// Bytes of a packet's labels, with its status byte: with the tree's label, and with a rack's.
std::uint64_t tree_label_bytes(const Clos& clos);
std::uint64_t rack_label_bytes(const Clos& clos);
// Writes so many bytes: the status byte, then the fields, each with its first bit first.
void encode_tree_label(const Clos& clos, const OrcaLabel& label, std::uint8_t* to);
void encode_rack_label(const Clos& clos, const std::vector<int>& ports, std::uint8_t* to);

}  // namespace ghostrank::multicast
