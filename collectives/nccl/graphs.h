// The result of NCCL's topology search on a node, as read from its graph dump
// (NCCL_GRAPH_DUMP_FILE): the order of the GPUs and the NICs of every channel, for the ring and the
// tree, with the speeds that the tuner uses. It replaces a template of nccl/node.h. All nodes are
// assumed to equal the dumped one. CollNet's graphs are not used.
//
// Units: 10^9 bytes per second, microseconds. Threading: immutable once made.
#pragma once

#include <memory>
#include <vector>

#include "collectives/nccl/node.h"

namespace ghostrank {

struct NcclGraphChannel {
  std::vector<int> order;     // local ranks, first to last
  std::vector<int> position;  // of each local rank in `order`; set by nccl_graphs()
  // first_nic: of the first rank; last_nic: of the others; -1: none.
  int first_nic = -1, last_nic = -1;
};

struct NcclGraph {
  NcclLinks links;
  std::vector<NcclGraphChannel> channels;
};

struct NcclGraphs {
  NcclNode node;
  NcclGraph ring, tree;
  NcclLinks nvls;  // no channels: the node has no NVLS
};

// Completes the node from the graphs. The ring and the tree get as many channels as the one with
// fewer has. `graphs` must have at least one channel of each, all with the same local ranks 0 ..
// n-1.
std::shared_ptr<const NcclGraphs> nccl_graphs(NcclGraphs graphs);

}  // namespace ghostrank
