// Two-level collectives for N nodes of L ranks each. All-reduce: reduce-scatter inside the node,
// all-reduce across nodes between the ranks of equal local rank, all-gather inside the node; all
// three are rings.
//
//   2 nodes of 2     inside the node   across nodes      inside the node
//   ranks 0 1 | 2 3  0 <> 1   2 <> 3   0 <> 2   1 <> 3   0 <> 1   2 <> 3
//
// The buffer is cut into L runs, one per local rank, and every run into N pieces, one per node.
// Each rank sends 2 (N-1)/N of its run to another node. Per node that is about as many bytes as
// in a ring over all ranks, but in 2(N-1) instead of 2(n-1) steps. If nodes differ in size or are
// scattered over the group, every rank counts as a node, and the result is a plain ring.
//
// Reduce-scatter and all-gather are halves of the all-reduce, over blocks. Inside a node, a message
// carries the blocks that belong to one local rank of every node, so it is scattered; across nodes
// it carries one block. The reduce-scatter begins inside the nodes, the all-gather ends there.
//
// Broadcast and reduce: a binomial tree (binomial.cpp) over the ranks that have the root's local
// rank, and one inside every node.
//
//   all-reduce                   2(L-1) + 2(N-1) steps, 2(n-1) S in total
//   reduce-scatter, all-gather   (L-1) + (N-1) steps, n(n-1) S in total
//   broadcast, reduce            ceil(log2 L) + ceil(log2 N) steps, (n-1) S in total
#include <algorithm>

#include "collectives/common/powers.h"
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

struct NodeCoords {
  int locals, nodes;  // L, N
  int local, node;
};

NodeCoords coords(const ChannelView& s, int p) {
  const int locals = s.ranks_a_node;
  return {locals, s.size / locals, p % locals, p / locals};
}

int around(int i, int n) { return (i % n + n) % n; }

int position(const NodeCoords& at, int node, int local) {
  return around(node, at.nodes) * at.locals + around(local, at.locals);
}

Block run(const ChannelView& s, const NodeCoords& at, int local) {
  return s.range(around(local, at.locals) * at.nodes, at.nodes, s.size);
}

Block piece(const ChannelView& s, const NodeCoords& at, int node) {
  return s.piece(at.local * at.nodes + around(node, at.nodes));
}

int rounds(const ChannelView& s, int p) {
  const NodeCoords at = coords(s, p);
  return 2 * (at.locals - 1) + 2 * (at.nodes - 1);
}

// As in ring.cpp: in round k of a ring a position sends the run k+1 positions to its left, and in
// the final all-gather the run k positions to its left.
Transfer send(const ChannelView& s, int p, int k) {
  const NodeCoords at = coords(s, p);
  const int inside = at.locals - 1, across = 2 * (at.nodes - 1);
  if (k < inside) return {position(at, at.node, at.local + 1), run(s, at, at.local - 1 - k)};
  k -= inside;
  if (k < across) return {position(at, at.node + 1, at.local), piece(s, at, at.node - 1 - k)};
  k -= across;
  return {position(at, at.node, at.local + 1), run(s, at, at.local - k)};
}

Transfer recv(const ChannelView& s, int p, int k) {
  const NodeCoords at = coords(s, p);
  const int inside = at.locals - 1, across = 2 * (at.nodes - 1);
  if (k < inside)
    return {position(at, at.node, at.local - 1), run(s, at, at.local - 2 - k), Combine::reduce};
  k -= inside;
  if (k < across)
    return {position(at, at.node - 1, at.local), piece(s, at, at.node - 2 - k),
            k < at.nodes - 1 ? Combine::reduce : Combine::copy};
  k -= across;
  return {position(at, at.node, at.local - 1), run(s, at, at.local - 1 - k)};
}

// ---- Reduce-scatter and all-gather

int one_way_rounds(const ChannelView& s, int p) {
  const NodeCoords at = coords(s, p);
  return at.locals - 1 + at.nodes - 1;
}

// A message of one round: its peer, and the blocks of one local rank on one node or on all nodes.
struct Blocks {
  int peer = kNoRank;
  int local = 0, node = 0;
  bool all_nodes = false;
};

// A ring's message in one round: sends the blocks `back` positions to the left and receives those
// one further.
Blocks inside(const NodeCoords& at, int back, Way way) {
  const bool sends = way == Way::send;
  return {position(at, at.node, at.local + (sends ? 1 : -1)),
          around(at.local - back - (sends ? 0 : 1), at.locals), 0, true};
}

Blocks across(const NodeCoords& at, int back, Way way) {
  const bool sends = way == Way::send;
  return {position(at, at.node + (sends ? 1 : -1), at.local), at.local,
          around(at.node - back - (sends ? 0 : 1), at.nodes), false};
}

Blocks scattering(const ChannelView& s, int p, int k, Way way) {
  const NodeCoords at = coords(s, p);
  const int first = at.locals - 1;
  return k < first ? inside(at, k + 1, way) : across(at, k - first + 1, way);
}

Blocks gathering(const ChannelView& s, int p, int k, Way way) {
  const NodeCoords at = coords(s, p);
  const int first = at.nodes - 1;
  return k < first ? across(at, k, way) : inside(at, k - first, way);
}

template <Blocks (*kBlocks)(const ChannelView&, int, int, Way)>
Transfer send_blocks(const ChannelView& s, int p, int k) {
  const Blocks b = kBlocks(s, p, k, Way::send);
  return {b.peer, s.blocks(b.all_nodes ? coords(s, p).nodes : 1)};
}

template <Blocks (*kBlocks)(const ChannelView&, int, int, Way), Combine kCombine>
Transfer recv_blocks(const ChannelView& s, int p, int k) {
  const Blocks b = kBlocks(s, p, k, Way::recv);
  return {b.peer, s.blocks(b.all_nodes ? coords(s, p).nodes : 1), kCombine};
}

template <Blocks (*kBlocks)(const ChannelView&, int, int, Way)>
void pieces(const ChannelView& s, int p, int k, Way way, std::vector<Block>& out) {
  const NodeCoords at = coords(s, p);
  const Blocks b = kBlocks(s, p, k, way);
  for (int node = 0; node < at.nodes; ++node)
    if (b.all_nodes || node == b.node) out.push_back(s.block(position(at, node, b.local)));
}

// ---- Broadcast and reduce

// A position in one of the trees: its distance v from the root, and its children at 1, 2, 4, ...
struct Branch {
  int v, children;
  Branch(int distance, int size) : v(distance) {
    const int reach = std::min(v == 0 ? size : v & -v, size - v);
    children = ceil_log2(reach);
  }
};

// A rank with the root's local rank is in the tree of the nodes and is the root of its node's tree.
struct Branches {
  NodeCoords at;
  Branch node, local;
  Branches(const ChannelView& s, int p)
      : at(coords(s, p)),
        node(around(at.node - s.root / at.locals, at.nodes), at.nodes),
        local(around(at.local - s.root % at.locals, at.locals), at.locals) {
    if (local.v > 0) node.children = 0;
  }
  bool is_root() const { return node.v == 0 && local.v == 0; }
  int children() const { return node.children + local.children; }
  int parent() const {
    return local.v > 0 ? position(at, at.node, at.local - (local.v & -local.v))
                       : position(at, at.node - (node.v & -node.v), at.local);
  }
  // The children in the order in which they report: first those on the node, then other nodes, the
  // nearest first.
  int child(int i) const {
    if (i < local.children) return position(at, at.node, at.local + (1 << i));
    return position(at, at.node + (1 << (i - local.children)), at.local);
  }
};

int tree_rounds(const ChannelView& s, int p) {
  const Branches b(s, p);
  return b.children() + (b.is_root() ? 0 : 1);
}

Transfer broadcast_send(const ChannelView& s, int p, int k) {
  const Branches b(s, p);
  const int told = b.is_root() ? k : k - 1;
  return told < 0 ? Transfer{} : Transfer{b.child(b.children() - 1 - told), s.share};
}

Transfer broadcast_recv(const ChannelView& s, int p, int k) {
  const Branches b(s, p);
  return b.is_root() || k > 0 ? Transfer{} : Transfer{b.parent(), s.share};
}

Transfer reduce_send(const ChannelView& s, int p, int k) {
  const Branches b(s, p);
  return k < b.children() ? Transfer{} : Transfer{b.parent(), s.share};
}

Transfer reduce_recv(const ChannelView& s, int p, int k) {
  const Branches b(s, p);
  return k < b.children() ? Transfer{b.child(k), s.share, Combine::reduce} : Transfer{};
}

}  // namespace

const Form kTwoLevelReduceScatter{.rounds = one_way_rounds,
                                  .send = send_blocks<scattering>,
                                  .recv = recv_blocks<scattering, Combine::reduce>,
                                  .pieces = pieces<scattering>};
const Form kTwoLevelAllGather{.rounds = one_way_rounds,
                              .send = send_blocks<gathering>,
                              .recv = recv_blocks<gathering, Combine::copy>,
                              .pieces = pieces<gathering>};
const Form kTwoLevelBroadcast{
    .rounds = tree_rounds, .send = broadcast_send, .recv = broadcast_recv};
const Form kTwoLevelReduce{.rounds = tree_rounds, .send = reduce_send, .recv = reduce_recv};
const Form kTwoLevelAllReduce{
    .pace = Form::Pace::uneven, .rounds = rounds, .send = send, .recv = recv};

}  // namespace ghostrank
