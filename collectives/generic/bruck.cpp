// Bruck's all-gather and all-to-all: ceil(log2 n) rounds for any n.
//
// All-gather: before round k a position holds 2^k blocks: its own and those to its right, around
// the group. It sends them to the position 2^k to its left, except those that the receiver has
// already.
//
//   size 5        round 0   round 1     round 2
//   position 0    0 > 4     01 > 3      0 > 1       "01 > 3": sends blocks 0 and 1 to position 3
//   position 1    1 > 0     12 > 4      1 > 2
//
// All-to-all: a block that must travel i positions to the right moves 2^k positions in round k for
// every set bit k of i. In round k a position sends, in one message, all blocks in transit whose i
// has bit k set.
//
//   size 5, i     round 0   round 1     round 2
//   any position  1 3 > +1  2 3 > +2    4 > +4
//
// In transit, position p keeps the block with distance i in block p-i of its work buffer, where the
// block belongs on arrival. A block that is sent for the first time comes from the input.
// The messages of both algorithms are scattered.
//
//   all-gather   ceil(log2 n) steps, n(n-1) S in total
//   all-to-all   ceil(log2 n) steps, every rank sends as many blocks as there are set bits in
//                0 .. n-1: about n/2 log2 n
#include <algorithm>

#include "collectives/common/powers.h"
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

int rounds(const ChannelView& s, int) { return ceil_log2(s.size); }

int gathered(const ChannelView& s, int k) { return std::min(1 << k, s.size - (1 << k)); }

Transfer gather_send(const ChannelView& s, int p, int k) {
  return {s.wrap(p - (1 << k)), s.blocks(p, gathered(s, k))};
}

Transfer gather_recv(const ChannelView& s, int p, int k) {
  const int from = s.wrap(p + (1 << k));
  return {from, s.blocks(from, gathered(s, k))};
}

void gather_pieces(const ChannelView& s, int p, int k, Way way, std::vector<Block>& out) {
  const int first = way == Way::send ? p : p + (1 << k);
  for (int i = 0; i < gathered(s, k); ++i) out.push_back(s.block(s.wrap(first + i)));
}

// How many of 0 .. n-1 have bit k set.
int with_bit(int n, int k) {
  return (n >> (k + 1) << k) + std::max(0, (n & ((2 << k) - 1)) - (1 << k));
}

Transfer exchange_send(const ChannelView& s, int p, int k) {
  return {s.wrap(p + (1 << k)), s.blocks(with_bit(s.size, k))};
}

Transfer exchange_recv(const ChannelView& s, int p, int k) {
  return {s.wrap(p - (1 << k)), s.blocks(with_bit(s.size, k))};
}

void exchange_pieces(const ChannelView& s, int p, int k, Way way, std::vector<Block>& out) {
  for (int i = 1 << k; i < s.size; ++i) {
    if ((i >> k & 1) == 0) continue;
    const bool first_time = way == Way::send && (i & ((1 << k) - 1)) == 0;
    out.push_back(first_time ? s.outgoing(p, s.wrap(p + i)) : s.block(s.wrap(p - i)));
  }
}

}  // namespace

const Form kBruckAllGather{
    .rounds = rounds, .send = gather_send, .recv = gather_recv, .pieces = gather_pieces};
const Form kBruckAllToAll{
    .rounds = rounds, .send = exchange_send, .recv = exchange_recv, .pieces = exchange_pieces};

}  // namespace ghostrank
