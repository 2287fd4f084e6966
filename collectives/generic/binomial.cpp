// Binomial-tree broadcast, reduce, scatter and gather. Let v be a position's distance from the
// root, counted around the group, and low(v) the lowest set bit of v: v's parent is v - low(v).
//
//   size 8, broadcast              reduce: the same tree with all arrows reversed and the rounds in
//                                  reverse order
//   round 0    0 ------> 4
//   round 1    0 -> 2    4 -> 6
//   round 2    0->1 2->3 4->5 6->7
//
// A position sends to its farthest child first, so that the largest subtree starts earliest; in a
// reduce it receives from its nearest child first. Children with v >= n do not exist.
//
// Steps ceil(log2 n). Every rank but the root receives (in a reduce: sends) the buffer once: (n-1)
// S in total.
//
// Scatter and gather use the same trees. A message carries the blocks of the whole subtree; the
// blocks are not contiguous if the subtree wraps around the end of the group. The block of v takes
// as many steps as v has set bits; so the total is S times the set bits in 0 .. n-1.
#include <algorithm>
#include <bit>

#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

// A position in the tree.
struct Node {
  int v;
  int low;       // distance to the parent; the root's: to the end of the group
  int children;  // at distances 1, 2, 4, ...
};

Node node(const ChannelView& s, int position) {
  const int v = s.wrap(position - s.root);
  const int low = v == 0 ? s.size : v & -v;
  const unsigned reach = std::min(low - 1, s.size - 1 - v);
  return {v, low, static_cast<int>(std::bit_width(reach))};
}

bool is_root(const Node& n) { return n.v == 0; }
int parent(const ChannelView& s, const Node& n) { return s.wrap(s.root + n.v - n.low); }
int child(const ChannelView& s, const Node& n, int i) { return s.wrap(s.root + n.v + (1 << i)); }

int rounds(const ChannelView& s, int position) {
  const Node n = node(s, position);
  return n.children + (is_root(n) ? 0 : 1);
}

Transfer broadcast_recv(const ChannelView& s, int position, int k) {
  const Node n = node(s, position);
  if (is_root(n) || k > 0) return {};
  return {parent(s, n), s.share};
}

Transfer broadcast_send(const ChannelView& s, int position, int k) {
  const Node n = node(s, position);
  const int told = is_root(n) ? k : k - 1;
  if (told < 0) return {};
  return {child(s, n, n.children - 1 - told), s.share};
}

Transfer reduce_recv(const ChannelView& s, int position, int k) {
  const Node n = node(s, position);
  if (k >= n.children) return {};
  return {child(s, n, k), s.share, Combine::reduce};
}

Transfer reduce_send(const ChannelView& s, int position, int k) {
  const Node n = node(s, position);
  if (k < n.children) return {};
  return {parent(s, n), s.share};
}

// Scatter and gather: the number of positions in the subtree of v, whose blocks travel between v
// and its parent.
int subtree(const ChannelView& s, int v) { return std::min(v & -v, s.size - v); }

int between(const ChannelView& s, int position, int peer) {
  return std::max(s.wrap(position - s.root), s.wrap(peer - s.root));
}

Transfer blocks_with(const ChannelView& s, int position, const Transfer& t) {
  if (t.peer == kNoRank) return {};
  return {t.peer, s.blocks(subtree(s, between(s, position, t.peer)))};
}

Transfer scatter_send(const ChannelView& s, int position, int k) {
  return blocks_with(s, position, broadcast_send(s, position, k));
}
Transfer scatter_recv(const ChannelView& s, int position, int k) {
  return blocks_with(s, position, broadcast_recv(s, position, k));
}
Transfer gather_send(const ChannelView& s, int position, int k) {
  return blocks_with(s, position, reduce_send(s, position, k));
}
Transfer gather_recv(const ChannelView& s, int position, int k) {
  return blocks_with(s, position, reduce_recv(s, position, k));
}

template <Transfer (*kSend)(const ChannelView&, int, int),
          Transfer (*kRecv)(const ChannelView&, int, int)>
void subtree_pieces(const ChannelView& s, int position, int k, Way way, std::vector<Block>& out) {
  const Transfer t = way == Way::send ? kSend(s, position, k) : kRecv(s, position, k);
  if (t.peer == kNoRank) return;
  const int v = between(s, position, t.peer);
  for (int i = 0; i < subtree(s, v); ++i) out.push_back(s.block(s.wrap(s.root + v + i)));
}

}  // namespace

const Form kBinomialScatter{.rounds = rounds,
                            .send = scatter_send,
                            .recv = scatter_recv,
                            .pieces = subtree_pieces<broadcast_send, broadcast_recv>};
const Form kBinomialGather{.rounds = rounds,
                           .send = gather_send,
                           .recv = gather_recv,
                           .pieces = subtree_pieces<reduce_send, reduce_recv>};
const Form kBinomialBroadcast{.rounds = rounds, .send = broadcast_send, .recv = broadcast_recv};
const Form kBinomialReduce{.rounds = rounds, .send = reduce_send, .recv = reduce_recv};

}  // namespace ghostrank
