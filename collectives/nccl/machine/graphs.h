// The result of NCCL's topology search for the GPUs of one communicator: the order of the GPUs and
// the NICs of every channel, for the ring and the tree, the heads of NVLS, and the speeds that the
// tuner uses. It comes from the search itself (nccl/machine/search.h) or from the graph dump of a
// real node (NCCL_GRAPH_DUMP_FILE). CollNet's graphs are not used.
//
// Units: 10^9 bytes per second, microseconds. Threading: immutable once made.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "collectives/nccl/machine/node.h"

namespace ghostrank {

// A NIC, as a channel names it: a number of the node's NICs, -1 for none, or the NIC beside the GPU
// of a local rank. The last form keeps its meaning for other GPUs of the node.
constexpr int nccl_nic_beside(int local) { return -2 - local; }
constexpr bool is_nic_beside(int nic) { return nic < -1; }
constexpr int local_beside(int nic) { return -2 - nic; }

struct NcclGraphChannel {
  std::vector<int> order;     // local ranks, first to last
  std::vector<int> position;  // of each local rank in `order`; set by nccl_graphs()
  // first_nic: of the first rank; last_nic: of the others.
  int first_nic = -1, last_nic = -1;
  bool operator==(const NcclGraphChannel&) const = default;
};

struct NcclGraph {
  NcclLinks links;
  std::vector<NcclGraphChannel> channels;
  bool operator==(const NcclGraph&) const = default;
};

// A GPU that sums one share of the data in the NVLink switch for its node, and its NIC.
struct NcclHead {
  int local = 0;
  int nic = -1;
  bool operator==(const NcclHead&) const = default;
};

struct NcclGraphs {
  NcclNode node;
  NcclGraph ring, tree;
  NcclLinks nvls;  // no channels: the node has no NVLS
  std::vector<NcclHead> heads;
  // By local rank: the NICs of a GPU that has several, which take turns by channel. Else empty.
  std::vector<std::vector<int>> own_nics;
  // Graphs of the communicator's smaller nodes, by number of ranks. Empty: all have one size.
  std::map<int, std::shared_ptr<const NcclGraphs>> smaller;
};

// Completes the node from the graphs. The ring and the tree get as many channels as the one with
// fewer has. `graphs` must have at least one channel of each, all with the same local ranks 0 ..
// n-1.
std::shared_ptr<const NcclGraphs> nccl_graphs(NcclGraphs graphs);

}  // namespace ghostrank
