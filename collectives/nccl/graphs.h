// What NCCL's search found on a node, as its graph dump (NCCL_GRAPH_DUMP_FILE) tells it: the order
// of GPUs and the NICs of every channel, for the ring and the tree, with the speeds that its tuner
// counts with. It takes the place of a template of nccl/node.h. All nodes are taken to be like the
// one that was dumped. CollNet's graphs are not used.
//
// Units: 10^9 bytes per second, microseconds. Threading: immutable once made.
#pragma once

#include <memory>
#include <vector>

#include "collectives/nccl/node.h"

namespace ghostrank {

struct NcclGraphChannel {
  std::vector<int> order;             // local ranks, first to last
  std::vector<int> position;          // of a local rank in `order`; filled in by nccl_graphs()
  int first_nic = -1, last_nic = -1;  // of the first rank, and of all others; -1: none
};

struct NcclGraph {
  NcclLinks links;
  std::vector<NcclGraphChannel> channels;
};

struct NcclGraphs {
  NcclNode node;
  NcclGraph ring, tree;
  NcclLinks nvls;  // no channels: not there
};

// Makes a node of what was found: the ring and the tree get as many channels as the one with fewer
// has. `graphs` has one channel or more of each, all with the same local ranks 0 .. n-1.
std::shared_ptr<const NcclGraphs> nccl_graphs(NcclGraphs graphs);

}  // namespace ghostrank
