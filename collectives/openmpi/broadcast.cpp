// Open MPI's broadcasts that cut the buffer, derived from its source. Messages, sizes and order are
// exact; the time at which a send is posted is the schedule's. A position is the distance v from
// the root, counted around the group.
//
// Split binary tree: the first half (L) goes down the left subtree of a binary tree (trees.h), the
// second half (R) down the right one; then positions 1 and 2, 3 and 4, ... exchange halves. In a
// group of even size the last position has no partner, so the root sends it the second half.
//
//   size 6    0 > 1: L    0 > 2: R    1 > 3 5: L    2 > 4: R    1 <> 2   3 <> 4   0 > 5: R
//
// Scatter and all-gather: blocks of ceil(count / n) elements go down a binomial tree, the largest
// subtree first, until the elements run out. Then subtrees of 1, 2, 4, ... positions exchange the
// blocks they have, empty or not. If a position's partner would lie beyond the group, positions
// that had a partner forward to it what they received, at half the distance, a quarter, ... The
// ring variant sends every position's block around a ring instead.
//
//   size 5    0 > 4: 4     0 > 2: 23    0 > 1: 1    2 > 3: 3
//             0 <> 1, 2 <> 3    0 <> 2, 1 <> 3    0 <> 4    0 > 2: 4    0 > 1: 4, 2 > 3: 4
#include <algorithm>
#include <bit>

#include "collectives/common/powers.h"
#include "collectives/generic/trees.h"
#include "collectives/openmpi/openmpi.h"

namespace ghostrank {
namespace {

int virtual_rank(const ChannelView& s, int p) { return s.wrap(p - s.root); }
int position(const ChannelView& s, int v) { return s.wrap(s.root + v); }

// ---- Split binary tree

Block half(const ChannelView& s, bool first) {
  const std::uint64_t longer = s.share.count - s.share.count / 2;
  return first ? Block{s.share.offset, longer}
               : Block{s.share.offset + longer, s.share.count - longer};
}

// The half that position v receives down the tree.
Block own_half(const ChannelView& s, int v) { return half(s, v % 2 == 1); }

int children(const ChannelView& s, int v) {
  return (binary_child(s.size, v, 0) != kNoRank ? 1 : 0) +
         (binary_child(s.size, v, 1) != kNoRank ? 1 : 0);
}

bool without_partner(const ChannelView& s, int v) { return s.size % 2 == 0 && v == s.size - 1; }

int split_rounds(const ChannelView& s, int p) {
  const int v = virtual_rank(s, p);
  if (s.size == 1) return 0;
  return children(s, v) + (v > 0 ? 2 : s.size % 2 == 0 ? 1 : 0);
}

Transfer split_send(const ChannelView& s, int p, int k) {
  const int v = virtual_rank(s, p), told = v > 0 ? k - 1 : k;
  if (told < 0) return {};
  if (told < children(s, v)) {
    const int child = binary_child(s.size, v, told);
    return {position(s, child), own_half(s, child)};
  }
  if (v == 0) return {position(s, s.size - 1), half(s, false)};
  if (without_partner(s, v)) return {};
  return {position(s, v % 2 == 1 ? v + 1 : v - 1), own_half(s, v)};
}

Transfer split_recv(const ChannelView& s, int p, int k) {
  const int v = virtual_rank(s, p);
  if (v == 0) return {};
  if (k == 0) return {position(s, binary_parent(v)), own_half(s, v)};
  if (k < 1 + children(s, v)) return {};
  const int partner = without_partner(s, v) ? 0 : v % 2 == 1 ? v + 1 : v - 1;
  return {position(s, partner), half(s, v % 2 == 0)};
}

// ---- Scatter

// The blocks of positions [first, end), cut at the end of the buffer.
Block blocks_between(const ChannelView& s, int first, int end) {
  const std::uint64_t n = s.size;
  const std::uint64_t block = (s.share.count + n - 1) / n;
  const auto edge = [&](int v) { return std::min(s.share.count, v * block); };
  return {s.share.offset + edge(first), edge(end) - edge(first)};
}

Block blocks_of_subtree(const ChannelView& s, int v) {
  return blocks_between(s, v, std::min(v + (v & -v), s.size));
}

Transfer unless_empty(const Transfer& t) { return t.block.count == 0 ? Transfer{} : t; }

int scatter_children(const ChannelView& s, int v) {
  const int reach = v == 0 ? s.size - 1 : std::min((v & -v) - 1, s.size - 1 - v);
  return std::bit_width(static_cast<unsigned>(reach));
}

int scatter_rounds(const ChannelView& s, int v) { return scatter_children(s, v) + (v > 0 ? 1 : 0); }

Transfer scatter_send(const ChannelView& s, int v, int k) {
  const int told = v > 0 ? k - 1 : k;
  if (told < 0) return {};
  const int child = v + (1 << (scatter_children(s, v) - 1 - told));
  return unless_empty({position(s, child), blocks_of_subtree(s, child)});
}

Transfer scatter_recv(const ChannelView& s, int v, int k) {
  if (v == 0 || k > 0) return {};
  return unless_empty({position(s, v - (v & -v)), blocks_of_subtree(s, v)});
}

// ---- All-gather by recursive doubling

// A round of the all-gather: level l consists of an exchange at distance 2^l and then of the
// forwarding at distances 2^(l-1), ..., 2, 1.
struct Turn {
  int level = 0, passed = 0;  // passed 0: the exchange; else the forwarding at 2^(level - passed)
  explicit Turn(int k) {
    while (k > level) k -= ++level;
    passed = k;
  }
};

int doubling_rounds(const ChannelView& s) {
  const int levels = ceil_log2(s.size);
  return levels * (levels + 1) / 2;
}

struct Doubled {
  int peer = kNoRank;                      // a position
  int sent = kNoRank, received = kNoRank;  // the subtree, named by its first position
};

Doubled doubled(const ChannelView& s, int v, const Turn& turn) {
  const int width = 1 << turn.level, own = v & -width, sibling = own ^ width;
  if (turn.passed == 0) {
    const int peer = v ^ width;
    return peer < s.size ? Doubled{peer, own, sibling} : Doubled{};
  }
  if (sibling >= s.size || sibling + width <= s.size) return {};
  const int distance = width >> turn.passed, peer = v ^ distance;
  const int informed = (v & -(2 * distance)) + s.size - sibling;  // lower positions have the data
  if (peer > v && v < informed && peer >= informed) return {peer, sibling, kNoRank};
  if (peer < v && peer < informed && v >= informed) return {peer, kNoRank, sibling};
  return {};
}

Block subtree(const ChannelView& s, int first, int level) {
  return blocks_between(s, first, std::min(first + (1 << level), s.size));
}

int gather_rounds(const ChannelView& s, int p) {
  return s.size == 1 ? 0 : scatter_rounds(s, virtual_rank(s, p)) + doubling_rounds(s);
}

Transfer gather_send(const ChannelView& s, int p, int k) {
  const int v = virtual_rank(s, p), before = scatter_rounds(s, v);
  if (k < before) return scatter_send(s, v, k);
  const Turn turn(k - before);
  const Doubled d = doubled(s, v, turn);
  return d.sent == kNoRank ? Transfer{}
                           : Transfer{position(s, d.peer), subtree(s, d.sent, turn.level)};
}

Transfer gather_recv(const ChannelView& s, int p, int k) {
  const int v = virtual_rank(s, p), before = scatter_rounds(s, v);
  if (k < before) return scatter_recv(s, v, k);
  const Turn turn(k - before);
  const Doubled d = doubled(s, v, turn);
  return d.received == kNoRank ? Transfer{}
                               : Transfer{position(s, d.peer), subtree(s, d.received, turn.level)};
}

// ---- All-gather by a ring

int ring_rounds(const ChannelView& s, int p) {
  return s.size == 1 ? 0 : scatter_rounds(s, virtual_rank(s, p)) + s.size - 1;
}

Transfer ring_send(const ChannelView& s, int p, int k) {
  const int v = virtual_rank(s, p), before = scatter_rounds(s, v);
  if (k < before) return scatter_send(s, v, k);
  const int block = s.wrap(v - (k - before));
  return {s.wrap(p + 1), blocks_between(s, block, block + 1)};
}

Transfer ring_recv(const ChannelView& s, int p, int k) {
  const int v = virtual_rank(s, p), before = scatter_rounds(s, v);
  if (k < before) return scatter_recv(s, v, k);
  const int block = s.wrap(v - 1 - (k - before));
  return {s.wrap(p - 1), blocks_between(s, block, block + 1)};
}

}  // namespace

const Form kOpenMpiSplitBinary{.rounds = split_rounds, .send = split_send, .recv = split_recv};
const Form kOpenMpiScatterAllGather{
    .rounds = gather_rounds, .send = gather_send, .recv = gather_recv};
const Form kOpenMpiScatterRing{.rounds = ring_rounds, .send = ring_send, .recv = ring_recv};

}  // namespace ghostrank
