// See nccl/machine/node.h.
#include "collectives/nccl/machine/node.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <string>

#include "collectives/common/powers.h"
#include "collectives/nccl/machine/graphs.h"

namespace ghostrank {
namespace {

const NcclGraphChannel& channel_of(const NcclGraph& graph, int channel) {
  return graph.channels[channel % graph.channels.size()];
}

NcclList list_of(const NcclGraph& graph, int channel) {
  const NcclGraphChannel& found = channel_of(graph, channel);
  return {&found.order, &found.position};
}

// The graphs of a node with `ranks` ranks.
const NcclGraphs& graphs_of(const NcclNode& node, int ranks) {
  return ranks == node.gpus ? *node.graphs : *node.graphs->smaller.at(ranks);
}

int nic_of(const NcclGraph& graph, int channel, int local) {
  const NcclGraphChannel& found = channel_of(graph, channel);
  return found.order.front() == local ? found.first_nic : found.last_nic;
}

// The tree over nodes whose root is node 0: a node's parent has the node's lowest set bit cleared
// and the next bit set; or only cleared, if that parent does not exist.
NcclTreeNode binary_tree(int nodes, int node) {
  NcclTreeNode t;
  int bit = 0;
  if (node == 0) {
    bit = power_of_two_above(nodes);
    if (nodes > 1) t.child[1] = bit / 2;
    return t;
  }
  bit = node & -node;
  t.up = (node ^ bit) | (2 * bit);
  if (t.up >= nodes) t.up = node ^ bit;
  t.child_type = node < t.up ? 0 : 1;
  int low = bit / 2;
  if (low == 0) return t;
  t.child[0] = node - low;
  while (low > 0 && node + low >= nodes) low /= 2;
  if (low > 0) t.child[1] = node + low;
  return t;
}

}  // namespace

int NcclNode::channels(int nodes) const {
  const int channels = tree_channels();
  // NCCL doubles the channels if the links are fast.
  const bool fast = gpu == NcclGpu::hopper && nodes > 1 &&
                    nccl_links(*this, NcclAlgorithm::ring).inside_GBps > 45;
  return fast && channels < 16 ? 2 * channels : channels;
}

NcclLinks nccl_links(const NcclNode& node, NcclAlgorithm algorithm) {
  const NcclGraphs& graphs = *node.graphs;
  if (algorithm == NcclAlgorithm::nvls || algorithm == NcclAlgorithm::nvls_tree) return graphs.nvls;
  return algorithm == NcclAlgorithm::ring ? graphs.ring.links : graphs.tree.links;
}

NcclNodes::NcclNodes(int size, const std::vector<std::int32_t>& node_of)
    : size_(size), nodes_(size) {
  if (node_of.empty()) return;
  auto tables = std::make_shared<Tables>();
  std::map<std::int32_t, int> number;
  std::vector<std::vector<std::int32_t>> members;
  for (GroupRank r = 0; r < size; ++r) {
    const auto [it, is_new] = number.try_emplace(node_of[at(r)], static_cast<int>(number.size()));
    if (is_new) members.emplace_back();
    members[at(it->second)].push_back(r);
    tables->node.push_back(it->second);
  }
  nodes_ = static_cast<int>(members.size());
  tables->ordinal.resize(at(size));
  bool regular = true;
  for (const auto& ranks : members) {
    tables->first.push_back(static_cast<std::int32_t>(tables->rank.size()));
    largest_ = std::max(largest_, static_cast<int>(ranks.size()));
    for (const GroupRank r : ranks) {
      tables->ordinal[at(r)] = static_cast<std::int32_t>(tables->rank.size());
      regular &= tables->ordinal[at(r)] == r;
      tables->rank.push_back(r);
    }
  }
  tables->first.push_back(size);
  if (!regular || !uniform()) tables_ = std::move(tables);
}

NcclList nccl_ring_list(const NcclNode& node, int channel, int node_index, int ranks) {
  const NcclGraphs& graphs = graphs_of(node, ranks);
  const int search = channel % node.search_channels;
  const bool swap =
      graphs.node.swap_odd_nodes && node_index % 2 == 1 && node.search_channels % 2 == 0;
  return list_of(graphs.ring, swap ? search ^ 1 : search);
}

NcclList nccl_tree_list(const NcclNode& node, int channel, int ranks) {
  return list_of(graphs_of(node, ranks).tree, channel % node.search_channels);
}

// NCCL uses the channel's own list here, also on nodes that swapped their lists.
int nccl_ring_nic(const NcclNode& node, int channel, int local, int ranks) {
  return nic_of(graphs_of(node, ranks).ring, channel % node.search_channels, local);
}

int nccl_tree_nic(const NcclNode& node, int channel, int local, int ranks) {
  return nic_of(graphs_of(node, ranks).tree, channel % node.search_channels, local);
}

NcclTreeNode nccl_double_tree(int nodes, int node, int tree) {
  if (tree == 0) return binary_tree(nodes, node);
  const bool mirror = nodes % 2 == 0;
  const auto map = [&](int n) {
    if (n < 0) return n;
    return mirror ? nodes - 1 - n : (n + 1) % nodes;
  };
  NcclTreeNode t = binary_tree(nodes, mirror ? nodes - 1 - node : (node + nodes - 1) % nodes);
  t.up = map(t.up);
  for (int& child : t.child) child = map(child);
  return t;
}

NcclTreeLinks nccl_tree_links(const NcclNodes& nodes, const NcclNode& node, int channel,
                              GroupRank r) {
  const int within = channel % node.tree_channels();
  const int search = within % node.search_channels, which = within / node.search_channels;
  const auto list_of = [&](int n) { return nccl_tree_list(node, search, nodes.ranks_of(n)); };
  const auto rank_at = [&](int n, int position) {
    return nodes.rank_at(n, list_of(n).local_at(position));
  };
  // The position in a node's list at which a child attaches.
  const auto attach = [&](int n, int child_type) {
    const NcclNode::Tree tree = graphs_of(node, nodes.ranks_of(n)).node.tree;
    const bool second =
        tree == NcclNode::Tree::split || (tree == NcclNode::Tree::balanced && child_type == 0);
    return second ? std::min(1, nodes.ranks_of(n) - 1) : 0;
  };
  const int n = nodes.node_of(r), position = list_of(n).position_of(nodes.local_of(r));
  const NcclTreeNode vertex = nccl_double_tree(nodes.nodes(), n, which);

  NcclTreeLinks links;
  if (position > 0)
    links.up = rank_at(n, position - 1);
  else if (vertex.up >= 0)
    links.up = rank_at(vertex.up, attach(vertex.up, vertex.child_type));
  if (position + 1 < nodes.ranks_of(n)) links.down.push(rank_at(n, position + 1));
  for (int type = 0; type < 2; ++type) {
    const int child = vertex.child[type];
    if (child >= 0 && attach(n, type) == position) links.down.push(rank_at(child, 0));
  }
  return links;
}

}  // namespace ghostrank
