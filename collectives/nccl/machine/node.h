// Where NCCL's rings and trees run: the ranks of every node, the order in which a channel visits
// them, and the tree over nodes.
//
// NCCL searches the topology of a node for every communicator, by the GPUs that it has there:
// nccl/machine/search.h does the same on the description of a node (nccl/machine/templates.h), and
// a graph dump of a real node (NCCL_GRAPH_DUMP_FILE) replaces the search for communicators that
// fill their nodes.
//
// Local ranks are the positions of a node's ranks in the communicator.
//
// Threading: immutable values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "collectives/nccl/machine/machine.h"
#include "collectives/nccl/settings/split.h"
#include "collectives/schedule.h"

namespace ghostrank {

enum class NcclGpu : std::uint8_t { ampere, hopper };

struct NcclGraphs;  // nccl/machine/graphs.h

// The search result for one pattern (ring, tree, NVLS), in the tuner's terms.
struct NcclLinks {
  int channels = 0;
  double inside_GBps = 0, between_GBps = 0;  // of one channel, inside a node and between nodes
  double latency_us = 0;                     // of a NIC
  bool nvlink = true;                        // NVLink from every GPU to the next
  bool ll128 = true;                         // NICs near enough to the GPUs for NCCL to trust LL128
  bool same_channels = true;
  bool operator==(const NcclLinks&) const = default;
};

struct NcclNode {
  enum class Tree : std::uint8_t {  // to which of a node's first two ranks a child attaches
    plain,                          // both children attach to the first rank
    balanced,                       // the first child attaches to the second rank
    split,                          // both children attach to the second rank
  };

  int gpus = 1;                 // of the communicator
  int nics = 0;                 // of the node; 0: unknown
  int search_channels = 1;      // channels that the search found for the ring, and for the tree
  bool swap_odd_nodes = false;  // odd nodes use the list of channel c^1
  Tree tree = Tree::plain;

  NcclGpu gpu = NcclGpu::hopper;
  NcclCpu cpu = NcclCpu::intel;
  double nic_GBps = 50;
  int nics_per_gpu = 1;
  int nvlinks = 18;
  const NcclGraphs* graphs = nullptr;  // the graphs that hold this node

  // Two per search channel, one for each of the two trees.
  int tree_channels() const { return std::min(64, 2 * search_channels); }
  // Channels of a communicator for which no limit is set.
  int channels(int nodes) const;
};

NcclLinks nccl_links(const NcclNode& node, NcclAlgorithm algorithm);

// The nodes of a group, numbered in the order of their first ranks, and the local ranks inside
// them, in group order.
class NcclNodes {
 public:
  NcclNodes(int size, const std::vector<std::int32_t>& node_of);  // empty: one rank per node

  int size() const { return size_; }
  int nodes() const { return nodes_; }
  // Ranks of the largest node.
  int ranks_per_node() const { return largest_; }
  bool uniform() const { return size_ == nodes_ * largest_; }
  int node_of(GroupRank r) const { return tables_ ? tables_->node[at(r)] : r / largest_; }
  int local_of(GroupRank r) const {
    return tables_ ? ordinal_of(r) - first(node_of(r)) : r % largest_;
  }
  int ranks_of(int node) const { return tables_ ? first(node + 1) - first(node) : largest_; }
  GroupRank rank_at(int node, int local) const {
    return tables_ ? tables_->rank[at(first(node) + local)] : node * largest_ + local;
  }
  // An ordinal is the number of a rank when the ranks are counted node by node.
  int ordinal_of(GroupRank r) const { return tables_ ? tables_->ordinal[at(r)] : r; }
  GroupRank rank_of_ordinal(int i) const { return tables_ ? tables_->rank[at(i)] : i; }
  int first(int node) const { return tables_ ? tables_->first[at(node)] : node * largest_; }
  int node_at(int ordinal) const {
    return tables_ ? tables_->node[at(rank_of_ordinal(ordinal))] : ordinal / largest_;
  }

 private:
  struct Tables {
    std::vector<std::int32_t> node, ordinal;  // by rank
    std::vector<std::int32_t> rank;           // by ordinal
    std::vector<std::int32_t> first;          // by node; one more entry for the end
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  int size_ = 1, nodes_ = 1, largest_ = 1;
  // Null if the ranks of every node are neighbours and all nodes have one size.
  std::shared_ptr<const Tables> tables_;
};

// The order of a node's ranks on one search channel: maps positions 0 .. ranks-1 to local ranks.
struct NcclList {
  const std::vector<int>*order = nullptr, *position = nullptr;
  int local_at(int at) const { return (*order)[at]; }
  int position_of(int local) const { return (*position)[local]; }
};
NcclList nccl_ring_list(const NcclNode& node, int channel, int node_index, int ranks);
NcclList nccl_tree_list(const NcclNode& node, int channel, int ranks);

// The NIC that a rank uses to reach other nodes on a channel; see NcclGraphChannel. NCCL stores two
// NICs per channel: one for the first GPU of the channel's list and one for all others. A rank
// without a NIC of its own, or with another GPU's NIC, reaches it over PCIe or NVLink (PXN).
int nccl_ring_nic(const NcclNode& node, int channel, int local, int ranks);
int nccl_tree_nic(const NcclNode& node, int channel, int local, int ranks);

// One channel's ring over all ranks of a group.
class NcclRing {
 public:
  NcclRing(const NcclNodes& nodes, const NcclNode& node, int channel)
      : nodes_(nodes), node_(&node), channel_(channel) {}
  GroupRank rank_at(int position) const {
    if (nodes_.ranks_per_node() == 1) return nodes_.rank_at(position, 0);
    const int n = nodes_.node_at(position);
    const NcclList list = nccl_ring_list(*node_, channel_, n, nodes_.ranks_of(n));
    return nodes_.rank_at(n, list.local_at(position - nodes_.first(n)));
  }
  int position_of(GroupRank r) const {
    const int n = nodes_.node_of(r);
    if (nodes_.ranks_per_node() == 1) return n;
    const NcclList list = nccl_ring_list(*node_, channel_, n, nodes_.ranks_of(n));
    return nodes_.first(n) + list.position_of(nodes_.local_of(r));
  }

 private:
  NcclNodes nodes_;
  const NcclNode* node_;
  int channel_;
};

// A node in one of the two trees over nodes; -1: none. `child_type` is the index of this node among
// its parent's children; -1 at the root.
struct NcclTreeNode {
  int up = -1;
  std::array<int, 2> child{-1, -1};
  int child_type = -1;
  bool operator==(const NcclTreeNode&) const = default;
};
NcclTreeNode nccl_double_tree(int nodes, int node, int tree);

// A rank's neighbours in the tree of a communicator's channel. `down` lists the next rank of the
// same node first, then ranks on the child nodes.
struct NcclTreeLinks {
  GroupRank up = kNoRank;
  Peers down;
};
NcclTreeLinks nccl_tree_links(const NcclNodes& nodes, const NcclNode& node, int channel,
                              GroupRank r);

}  // namespace ghostrank
