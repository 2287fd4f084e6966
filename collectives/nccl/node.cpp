// See nccl/node.h. The templates were obtained by replaying NCCL's search for these nodes, not from
// real ones; the graph dump of a real node is the better source.
#include "collectives/nccl/node.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <stdexcept>
#include <string>

#include "collectives/nccl/graphs.h"

namespace ghostrank {
namespace {

using Ring = NcclNode::Ring;
using Tree = NcclNode::Tree;

constexpr std::array kNodes{
    NcclNode{"one-gpu", 1, 1, 1, 1, 1, Ring::down, false, false, Tree::plain, NcclGpu::hopper, 24,
             25},
    NcclNode{"one-gpu-400g", 1, 1, 1, 1, 2, Ring::down, false, false, Tree::plain},
    NcclNode{"hgx-h100-400g", 8, 8, 8, 1, 8, Ring::alternating, true, false, Tree::plain,
             NcclGpu::hopper, 48, 50, 1, 18, true, 40},
    NcclNode{"hgx-h100-200g", 8, 8, 8, 1, 8, Ring::down, false, true, Tree::plain, NcclGpu::hopper,
             24, 25},
    NcclNode{"hgx-h100-4nic", 8, 4, 4, 2, 8, Ring::down, false, true, Tree::balanced},
    NcclNode{"hgx-h100-1nic", 8, 1, 1, 1, 2, Ring::down, false, true, Tree::plain},
    NcclNode{"dgx-a100", 8, 8, 8, 1, 8, Ring::alternating, false, true, Tree::balanced,
             NcclGpu::ampere, 24, 25, 1, 12},
};

const NcclGraphChannel& channel_of(const NcclGraph& graph, int channel) {
  return graph.channels[static_cast<std::size_t>(channel) % graph.channels.size()];
}

NcclList list_of(const NcclGraph& graph, int channel, int ranks) {
  const NcclGraphChannel& found = channel_of(graph, channel);
  return {found.order.front(), false, ranks, &found.order, &found.position};
}

// True if a template gives the NICs through which a node's channels leave. The single-GPU templates
// do not: in a node with more GPUs, of which the communicator has one, that GPU uses its own NIC.
bool knows_nics(const NcclNode& node, int ranks) {
  return ranks == node.gpus && (ranks > 1 || node.graphs);
}

// The NIC beside a GPU of a template.
int nic_of_gpu(const NcclNode& node, int gpu) { return gpu * node.nics / node.gpus; }

// The list of a channel in a node: its number, and whether the ring counts up.
struct Choice {
  int list = 0;
  bool ring_up = false;
};

Choice choose(const NcclNode& node, int channel, bool swap, int ranks) {
  // With fewer ranks than the template has GPUs, there are fewer lists.
  const int lists = std::max(1, std::min(node.lists, ranks / node.stride));
  int list = channel % node.search_channels % lists;
  if (swap && lists % 2 == 0) list ^= 1;
  return {list, node.ring == Ring::alternating && list % 2 == 1};
}

// The tree over nodes whose root is node 0: a node's parent has the node's lowest set bit cleared
// and the next bit set; or only cleared, if that parent does not exist.
NcclTreeNode binary_tree(int nodes, int node) {
  NcclTreeNode t;
  int bit = 0;
  if (node == 0) {
    bit = static_cast<int>(std::bit_ceil(static_cast<unsigned>(nodes)));
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
  const bool nvls = algorithm == NcclAlgorithm::nvls_tree;
  if (node.graphs) {
    if (nvls) return node.graphs->nvls;
    return algorithm == NcclAlgorithm::ring ? node.graphs->ring.links : node.graphs->tree.links;
  }
  NcclLinks links;
  links.channels = nvls && node.nvls_GBps == 0 ? 0 : node.search_channels;
  links.inside_GBps = nvls ? node.nvls_GBps : node.channel_GBps;
  links.between_GBps = node.channel_GBps;
  links.ll128 = node.ll128;
  return links;
}

std::vector<std::string_view> nccl_node_names() {
  std::vector<std::string_view> names;
  for (const NcclNode& node : kNodes) names.push_back(node.name);
  return names;
}

const NcclNode& nccl_node(std::string_view name, int ranks_per_node) {
  if (name == "auto" || name.empty()) name = ranks_per_node == 1 ? "one-gpu" : "hgx-h100-400g";
  std::string known;
  for (const NcclNode& node : kNodes) {
    if (node.name == name) return node;
    known += ' ' + std::string(node.name);
  }
  throw std::invalid_argument("there is no node template '" + std::string(name) + "'; known are" +
                              known);
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
  tables->slot.resize(at(size));
  bool regular = true;
  for (const auto& ranks : members) {
    tables->first.push_back(static_cast<std::int32_t>(tables->rank.size()));
    largest_ = std::max(largest_, static_cast<int>(ranks.size()));
    for (const GroupRank r : ranks) {
      tables->slot[at(r)] = static_cast<std::int32_t>(tables->rank.size());
      regular &= tables->slot[at(r)] == r;
      tables->rank.push_back(r);
    }
  }
  tables->first.push_back(size);
  if (!regular || !uniform()) tables_ = std::move(tables);
}

NcclList nccl_ring_list(const NcclNode& node, int channel, int node_index, int ranks) {
  const bool swap = node.swap_odd_nodes && node_index % 2 == 1;
  if (node.graphs) {
    const int search = channel % node.search_channels;
    const bool swapped = swap && node.search_channels % 2 == 0;
    return list_of(node.graphs->ring, swapped ? search ^ 1 : search, ranks);
  }
  const Choice choice = choose(node, channel, swap, ranks);
  return {choice.list * node.stride % ranks, choice.ring_up, ranks};
}

NcclList nccl_tree_list(const NcclNode& node, int channel, int ranks) {
  if (node.graphs) return list_of(node.graphs->tree, channel, ranks);
  const Choice choice = choose(node, channel, false, ranks);
  // In a balanced tree the second rank shares the PCIe switch of the first one: on a DGX A100 that
  // is the next lower neighbour of every odd GPU.
  const bool up = node.tree == Tree::plain || !choice.ring_up;
  return {choice.list * node.stride % ranks, up, ranks};
}

int nccl_ring_nic(const NcclNode& node, int channel, int local, int ranks) {
  if (!knows_nics(node, ranks)) return Schedule::kOwnNic;
  // NCCL uses the channel's own list here, also on nodes that swapped their lists.
  const bool first = nccl_ring_list(node, channel, 0, ranks).local_at(0) == local;
  if (node.graphs) {
    const NcclGraphChannel& found = channel_of(node.graphs->ring, channel);
    return first ? found.first_nic : found.last_nic;
  }
  const int entry = nccl_ring_list(node, channel, 0, ranks).local_at(0);
  return nic_of_gpu(node, first || node.leaves_by_entry_nic ? entry : local);
}

int nccl_tree_nic(const NcclNode& node, int channel, int local, int ranks) {
  if (!knows_nics(node, ranks)) return Schedule::kOwnNic;
  const int entry = nccl_tree_list(node, channel, ranks).local_at(0);
  if (!node.graphs) return nic_of_gpu(node, entry);
  const NcclGraphChannel& found = channel_of(node.graphs->tree, channel);
  return entry == local ? found.first_nic : found.last_nic;
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
  const int search = within % node.search_channels, tree = within / node.search_channels;
  const auto list_of = [&](int n) { return nccl_tree_list(node, search, nodes.ranks_of(n)); };
  const auto rank_at = [&](int n, int position) {
    return nodes.rank_at(n, list_of(n).local_at(position));
  };
  // The position in a node's list at which a child attaches.
  const auto attach = [&](int n, int child_type) {
    const bool second =
        node.tree == Tree::split || (node.tree == Tree::balanced && child_type == 0);
    return second ? std::min(1, nodes.ranks_of(n) - 1) : 0;
  };
  const int n = nodes.node_of(r), position = list_of(n).position_of(nodes.local_of(r));
  const NcclTreeNode vertex = nccl_double_tree(nodes.nodes(), n, tree);

  NcclTreeLinks links;
  if (position > 0)
    links.up = rank_at(n, position - 1);
  else if (vertex.up >= 0)
    links.up = rank_at(vertex.up, attach(vertex.up, vertex.child_type));
  if (position + 1 < nodes.ranks_of(n)) links.down.push(rank_at(n, position + 1));
  for (int type = 0; type < 2; ++type) {
    const int child = vertex.child[static_cast<std::size_t>(type)];
    if (child >= 0 && attach(n, type) == position) links.down.push(rank_at(child, 0));
  }
  return links;
}

}  // namespace ghostrank
