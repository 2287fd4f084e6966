// Open MPI's linear reduce, its reduce over an in-order binary tree and its butterfly
// reduce-scatter, derived from its source. Messages, sizes and order are exact; the time at which a
// send is posted is the schedule's.
//
// Linear reduce: every rank sends to the root, which receives from the last rank first.
//
// In-order binary tree: the last rank of a row of ranks is the top. The first half of the others is
// the right subtree, whose last rank is the right child; the rest is the left subtree. A rank
// receives from its left child first. Finally the top sends the result to the root.
//
//   size 9    8 > 7 3    7 > 6 5    6 > -    5 > 4    3 > 2 1    1 > 0
//
// Butterfly reduce-scatter: the even ranks of the first 2x fold into their right neighbours
// (folding.h). A survivor stands for its own block and for that of the rank folded into it. The
// survivors halve the blocks with growing distance. Survivor v then holds the blocks of the
// survivor whose number is v with its bits reversed, and sends them there, the folded rank's block
// first.
//
//   size 4    rank 0: <-> 1: 23 > 01    <-> 2: 1 > 0
//             rank 1: <-> 0: 01 > 23    <-> 3: 3 > 2    <-> 2: 2 > 1
#include "collectives/generic/folding.h"
#include "collectives/openmpi/openmpi.h"

namespace ghostrank {
namespace {

// ---- Linear reduce

int linear_rounds(const ChannelView& s, int p) {
  return s.size == 1 ? 0 : p == s.root ? s.size - 1 : 1;
}

Transfer linear_send(const ChannelView& s, int p, int) {
  return p == s.root ? Transfer{} : Transfer{s.root, s.share};
}

Transfer linear_recv(const ChannelView& s, int p, int k) {
  if (p != s.root) return {};
  const int from = s.size - 1 - k;
  return {from > s.root ? from : from - 1, s.share, Combine::reduce};
}

// ---- In-order binary tree

// A rank of the tree over ranks 0 .. n-1.
struct InOrder {
  int parent = kNoRank, children[2] = {kNoRank, kNoRank};
  int degree = 0;
  InOrder(int n, int rank) {
    int first = 0, size = n;  // the subtree that contains `rank`
    while (rank != first + size - 1) {
      parent = first + size - 1;
      const int right = size > 2 ? size / 2 : 0;
      if (rank >= first + right) {
        first += right;
        size -= right + 1;
      } else {
        size = right;
      }
    }
    if (size > 1) children[degree++] = rank - 1;
    if (size > 2) children[degree++] = first + size / 2 - 1;
  }
};

// Rounds for the children and the parent, and one more if the top must send the result to the root.
int in_order_rounds(const ChannelView& s, int p) {
  const bool at_top = p == s.size - 1, away = s.root != s.size - 1;
  return InOrder(s.size, p).degree + (at_top ? 0 : 1) + (away && (at_top || p == s.root) ? 1 : 0);
}

Transfer in_order_send(const ChannelView& s, int p, int k) {
  const InOrder tree(s.size, p);
  if (k != tree.degree) return {};
  return {tree.parent == kNoRank ? s.root : tree.parent, s.share};
}

Transfer in_order_recv(const ChannelView& s, int p, int k) {
  const InOrder tree(s.size, p);
  if (k < tree.degree) return {tree.children[k], s.share, Combine::reduce};
  return k > tree.degree ? Transfer{s.size - 1, s.share} : Transfer{};
}

// ---- Butterfly

int mirrored(int number, int bits) {
  int result = 0;
  for (int i = 0; i < bits; ++i) result = result << 1 | (number >> i & 1);
  return result;
}

// The blocks of survivors [first, first + n).
Block of_survivors(const ChannelView& s, const Folding& f, int first, int n) {
  const int begin = f.span(first), end = f.span(first + n);
  return {s.block(begin).offset, s.blocks(end - begin).count};
}

// The blocks that survivor `number` keeps after `halvings` halvings.
Block butterfly_window(const ChannelView& s, const Folding& f, int number, int halvings) {
  const int n = f.survivors() >> halvings;
  return of_survivors(s, f, mirrored(number, halvings) * n, n);
}

// The fold, the halvings, the folded rank's block, the own block.
int butterfly_rounds(const ChannelView& s, int p) {
  const Folding f(s, p);
  if (s.size == 1) return 0;
  return f.folded ? 2 : (f.has_folded ? 1 : 0) + f.levels + 2;
}

Transfer butterfly_send(const ChannelView& s, int p, int k) {
  const Folding f(s, p);
  if (f.folded) return k == 0 ? Transfer{p + 1, s.blocks(s.size)} : Transfer{};
  k -= f.has_folded ? 1 : 0;
  if (k < 0) return {};
  if (k < f.levels) {
    const int partner = f.number ^ (1 << k);
    return {f.position(partner), butterfly_window(s, f, partner, k + 1)};
  }
  const int target = mirrored(f.number, f.levels), position = f.position(target);
  if (k == f.levels)
    return target < f.extra ? Transfer{position - 1, s.block(position - 1)} : Transfer{};
  return target == f.number ? Transfer{} : Transfer{position, s.block(position)};
}

Transfer butterfly_recv(const ChannelView& s, int p, int k) {
  const Folding f(s, p);
  const int source = mirrored(f.number, f.levels);
  if (f.folded) return k == 0 ? Transfer{} : Transfer{f.position(source), s.block(p)};
  k -= f.has_folded ? 1 : 0;
  if (k < 0) return {p - 1, s.blocks(s.size), Combine::reduce};
  if (k < f.levels)
    return {f.position(f.number ^ (1 << k)), butterfly_window(s, f, f.number, k + 1),
            Combine::reduce};
  return k == f.levels || source == f.number ? Transfer{}
                                             : Transfer{f.position(source), s.block(p)};
}

}  // namespace

int in_order_child(int n, int v, int i) {
  const InOrder tree(n, n - 1 - v);
  return i < tree.degree ? n - 1 - tree.children[i] : kNoRank;
}

const Form kOpenMpiLinearReduce{.rounds = linear_rounds, .send = linear_send, .recv = linear_recv};
const Form kOpenMpiInOrderReduce{
    .rounds = in_order_rounds, .send = in_order_send, .recv = in_order_recv};
const Form kOpenMpiButterfly{
    .rounds = butterfly_rounds, .send = butterfly_send, .recv = butterfly_recv};

}  // namespace ghostrank
