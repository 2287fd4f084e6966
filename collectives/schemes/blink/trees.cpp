#include "collectives/schemes/blink/trees.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>

#include "collectives/node_links.h"
#include "collectives/schemes/blink/packing.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostTrees = 1 << 16;  // as many channels can be told apart

// One hop from `root` to all others; from `top`, if that is another one, over `root`.
std::vector<int> one_hop(int n, int top, int root) {
  std::vector<int> parent(n, root);
  parent[root] = top;
  parent[top] = -1;
  return parent;
}

LinkGraph links_of(const std::vector<GroupRank>& members, const Communicator& comm) {
  LinkGraph graph{static_cast<int>(members.size()), {}};
  for (int a = 0; a < graph.n; ++a)
    for (int b = 0; b < graph.n; ++b) {
      const auto gpu = [&](int i) { return comm.gpu_of.empty() ? i : comm.gpu_of[members[i]]; };
      graph.rate.push_back(a == b || !comm.links ? 0 : comm.links->between(gpu(a), gpu(b)));
    }
  return graph;
}

}  // namespace

BlinkTrees::BlinkTrees(const Collective& c, const Communicator& comm)
    : func_(c.func), root_(c.root), node_(c.size), place_(c.size) {
  find_nodes(comm);
  if (c.size == 1 || c.count == 0) return;
  const int nodes = static_cast<int>(members_.size());
  int partitions = std::numeric_limits<int>::max();
  for (const auto& members : members_)
    partitions = std::min(partitions, static_cast<int>(members.size()));
  if (rooted()) partitions = std::max(1, partitions - 1);
  if (lone_with_links_) partitions = 1;
  const int parts = rooted() ? 1 : nodes;  // of a piece: one for each hub
  std::uint64_t begin = 0;
  for (int p = 0; p < partitions; ++p) {
    double from = 0;
    for (const Piece& piece : pieces(comm, p)) {
      const int local = add_local(piece.parents);
      for (int part = 0; part < parts; ++part) {
        const double end =
            part + 1 == parts ? piece.end : from + (piece.end - from) * (part + 1) / parts;
        const auto until = std::min<std::uint64_t>(
            c.count, std::llround(static_cast<double>(c.count) * (p + end) / partitions));
        if (until <= begin) continue;  // nothing is left for a tree of its own
        const int node = rooted() ? node_[root_] : part;
        const GroupRank hub =
            rooted() ? members_[node][hub_place(node, p)] : locals_[local].root[node];
        trees_.push_back({local, node, hub, {begin, until - begin}});
        begin = until;
      }
      from = piece.end;
    }
  }
  if (trees_.size() > kMostTrees)
    throw std::invalid_argument("blink needs " + std::to_string(trees_.size()) +
                                " trees on so many nodes, and at most " +
                                std::to_string(kMostTrees) + " can be told apart");
}

void BlinkTrees::find_nodes(const Communicator& comm) {
  std::map<std::int32_t, int> number;
  for (GroupRank r = 0; r < std::ssize(node_); ++r) {
    const std::int32_t node = comm.node_of.empty() ? r : comm.node_of[r];
    node_[r] = number.try_emplace(node, static_cast<int>(number.size())).first->second;
    if (node_[r] == std::ssize(members_)) members_.emplace_back();
    place_[r] = static_cast<int>(members_[node_[r]].size());
    members_[node_[r]].push_back(r);
  }
  if (comm.links && !comm.gpu_of.empty())
    for (const std::int32_t gpu : comm.gpu_of)
      if (gpu < 0 || gpu >= comm.links->gpus)
        throw std::invalid_argument("a rank is on GPU " + std::to_string(gpu) + ", and node '" +
                                    comm.links->name + "' has " + std::to_string(comm.links->gpus));
  const auto most =
      std::max_element(members_.begin(), members_.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (comm.links && comm.gpu_of.empty() && std::ssize(*most) > comm.links->gpus)
    throw std::invalid_argument("a node has " + std::to_string(most->size()) +
                                " ranks, and node '" + comm.links->name + "' has " +
                                std::to_string(comm.links->gpus) + " GPUs");
  lone_with_links_ = members_.size() == 1 && is_connected(links_of(members_[0], comm));
}

int BlinkTrees::hub_place(int node, int partition) const {
  const int own = place_[root_], others = static_cast<int>(members_[node].size()) - 1;
  if (others == 0) return own;
  return partition < own ? partition : partition + 1;
}

int BlinkTrees::root_place(int node, int partition) const {
  return rooted() && node == node_[root_] ? place_[root_] : partition;
}

std::vector<BlinkTrees::Piece> BlinkTrees::pieces(const Communicator& comm, int partition) {
  struct Share {  // of a node's trees
    double end;
    std::vector<int> parent;
  };
  std::vector<std::vector<Share>> shares(members_.size());
  for (int node = 0; node < std::ssize(members_); ++node) {
    const LinkGraph graph = links_of(members_[node], comm);
    const int root = root_place(node, partition);
    if (graph.n == 1 || !is_connected(graph)) {
      const bool top = rooted() && node == node_[root_];
      shares[node].push_back(
          {1, one_hop(graph.n, root, top && graph.n > 1 ? hub_place(node, partition) : root)});
      continue;
    }
    // Without direction the trees are the same ones from every root.
    const auto packing =
        rooted() ? pack_trees(graph, Ways::one, root) : pack_trees(graph, Ways::both, 0);
    double sum = 0;
    for (const PackedTree& tree : packing->trees) {
      sum += tree.rate;
      shares[node].push_back(
          {sum / packing->rate(),
           rooted() ? tree.parent
                    : rooted_at(tree.parent, lone_with_links_ ? centre_of(tree.parent) : root)});
    }
    shares[node].back().end = 1;
  }
  std::vector<Piece> out;
  std::vector<std::size_t> next(members_.size());
  while (out.empty() || out.back().end < 1) {
    Piece& piece = out.emplace_back(Piece{1, {}});
    for (std::size_t node = 0; node < next.size(); ++node) {
      const Share& share = shares[node][next[node]];
      piece.end = std::min(piece.end, share.end);
      piece.parents.push_back(share.parent);
    }
    for (std::size_t node = 0; node < next.size(); ++node)
      if (shares[node][next[node]].end <= piece.end) ++next[node];
  }
  return out;
}

int BlinkTrees::add_local(const std::vector<std::vector<int>>& parents) {
  Local local;
  local.parent.resize(node_.size(), kNoRank);
  int deepest = 0;
  for (int node = 0; node < std::ssize(members_); ++node) {
    const std::vector<GroupRank>& members = members_[node];
    for (std::size_t i = 0; i < members.size(); ++i)
      if (parents[node][i] == -1)
        local.root.push_back(members[i]);
      else
        local.parent[members[i]] = members[parents[node][i]];
    deepest = std::max(deepest, depth_of(parents[node]));
  }
  depth_ = std::max(depth_, members_.size() == 1 ? deepest : 2 * deepest + 1);
  local.first.resize(node_.size() + 1);
  for (const GroupRank above : local.parent)
    if (above != kNoRank) ++local.first[above + 1];
  for (std::size_t r = 1; r < local.first.size(); ++r) local.first[r] += local.first[r - 1];
  local.child.resize(local.first.back());
  std::vector<int> filled(local.first.begin(), local.first.end() - 1);
  for (GroupRank r = 0; r < std::ssize(local.parent); ++r)
    if (local.parent[r] != kNoRank) local.child[filled[local.parent[r]]++] = r;
  locals_.push_back(std::move(local));
  return static_cast<int>(locals_.size()) - 1;
}

GroupRank BlinkTrees::parent(int tree, GroupRank r) const {
  const Tree& t = trees_[tree];
  const GroupRank above = locals_[t.local].parent[r];
  return above == kNoRank && node_[r] != t.node ? t.hub : above;
}

int BlinkTrees::children(int tree, GroupRank r) const {
  const Tree& t = trees_[tree];
  const std::vector<int>& first = locals_[t.local].first;
  const int own = first[r + 1] - first[r];
  return r == t.hub ? own + static_cast<int>(members_.size()) - 1 : own;
}

GroupRank BlinkTrees::child(int tree, GroupRank r, int i) const {
  const Tree& t = trees_[tree];
  const Local& local = locals_[t.local];
  const int own = local.first[r + 1] - local.first[r];
  if (i < own) return local.child[local.first[r] + i];
  return local.root[i - own < t.node ? i - own : i - own + 1];
}

}  // namespace ghostrank
