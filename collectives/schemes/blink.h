// Blink (MLSys 2020): all-reduce, broadcast and reduce over packed spanning trees, so that the
// links of whichever GPUs of a node a job got are all used, where rings leave some idle.
//
//   tree t of 3 on 4 GPUs    up: reduce, chunk by chunk    down: broadcast
//   share w_t of the data      3 > 1 > 0,  2 > 0             0 > 1 > 3,  0 > 2
//
// Local trees. With links (Communicator::links) that connect a node's members the trees are packed
// (blink/packing.h). Members that no links connect, and those of a node without described links,
// count as connected all to all (an NVLink switch, or PCIe): tree p is then one hop, from the p-th
// member to all others, for every p (the paper's DGX-2).
//
// Several nodes. The data is cut into partitions, one for each member of the smallest node. In
// every node partition p goes up the local trees to the p-th member; these, one a node, reduce and
// broadcast in one hop, each node's for its part of the partition; then down the local trees. So a
// part has one tree over all ranks: local trees whose roots are the children of one of them, the
// hub. A broadcast's and a reduce's tree has the call's root, and a hub on its node.
//
// A single node with links has one partition, and each of its trees the root from which it is
// lowest. Where nodes have different trees, a part is as small as the smaller pieces demand.
//
// Chunks. A tree's share is cut into 20 chunks for each hop after the first (a tree is as many hops
// as it has links from top to bottom, twice that for an all-reduce), so that filling the pipeline
// takes at most 5 % longer, but none smaller than 64 KiB; Communicator::slice_bytes takes the place
// of both. All trees have the same number of chunks. Two chunks of a connection are in flight (or
// FlowControl::credits): without a bound the shares that are there from the start would stand
// before those that come from elsewhere at every link that trees share, and an all-reduce take up
// to half longer. Blink tunes the size while it runs (MIAD), and divides data between NVLink and
// PCIe; that is not played.
//
// Steps about 2 depth of the trees, bytes 2(n-1) S in total, half of both for a broadcast or
// reduce. From the paper as recalled: no code of Blink's authors was at hand, and none of this has
// run on GPUs. Threading: pure functions.
#pragma once

#include <memory>

#include "collectives/schedule.h"

namespace ghostrank {

// Throws std::invalid_argument for another function, an invalid size, root or node_of, and for more
// trees than there are channels.
std::unique_ptr<Schedule> make_blink(const Collective& c, const Communicator& comm);

}  // namespace ghostrank
