// Ring all-reduce and its two halves, in NCCL's order: the first piece that a position sends is its
// left neighbour's.
//
//   size 4       round 0    1    2  |  3    4    5     every position sends to the right and
//   position 0         3>   2>   1> |  0>   3>   2>    receives from the left; the number is the
//   position 1         0>   3>   2> |  1>   0>   3>    piece it sends. Left of the bar the receiver
//   position 2         1>   0>   3> |  2>   1>   0>    reduces; right of it, it copies. At the bar
//   position 3         2>   1>   0> |  3>   2>   1>    position p holds piece p complete.
//
// A position sends in round k+1 the piece that it received in round k. In NCCL's primitives the
// 2n-1 steps are: send, n-2 times recvReduceSend, recvReduceCopySend, n-2 times recvCopySend, recv.
// Reduce-scatter is the part left of the bar, all-gather the part right of it; there a piece is the
// block of one rank.
//
//   all-reduce       2(n-1) steps, every rank sends 2(n-1)/n of the buffer: 2(n-1) S in total
//   reduce-scatter   n-1 steps, every rank sends n-1 blocks of S: n(n-1) S in total
//   all-gather       the same
//   all-gather-v     n-1 steps, every rank sends all blocks but its right neighbour's
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

int left(const ChannelView& s, int p) { return s.wrap(p - 1); }
int right(const ChannelView& s, int p) { return s.wrap(p + 1); }
int half(const ChannelView& s, int) { return s.size - 1; }
int both(const ChannelView& s, int) { return 2 * (s.size - 1); }

int piece_sent(const ChannelView& s, int p, int k) { return s.wrap(p - 1 - k); }
int piece_received(const ChannelView& s, int p, int k) { return s.wrap(p - 2 - k); }
Combine on_receive(const ChannelView& s, int k) {
  return k < s.size - 1 ? Combine::reduce : Combine::copy;
}

Transfer send_piece(const ChannelView& s, int p, int k) {
  return {right(s, p), s.piece(piece_sent(s, p, k))};
}
Transfer recv_piece(const ChannelView& s, int p, int k) {
  return {left(s, p), s.piece(piece_received(s, p, k)), on_receive(s, k)};
}
Transfer send_block(const ChannelView& s, int p, int k) {
  return {right(s, p), s.block(piece_sent(s, p, k))};
}
Transfer recv_block(const ChannelView& s, int p, int k) {
  return {left(s, p), s.block(piece_received(s, p, k)), on_receive(s, k)};
}
// All-gather: the rounds after the bar.
Transfer send_gathered(const ChannelView& s, int p, int k) {
  return send_block(s, p, k + s.size - 1);
}
Transfer recv_gathered(const ChannelView& s, int p, int k) {
  return recv_block(s, p, k + s.size - 1);
}

}  // namespace

const Form kRingAllReduce{.unit = Form::Unit::piece,
                          .rounds = both,
                          .send = send_piece,
                          .recv = recv_piece,
                          .passes_on = right};
const Form kRingReduceScatter{
    .rounds = half, .send = send_block, .recv = recv_block, .passes_on = right};
const Form kRingAllGather{
    .rounds = half, .send = send_gathered, .recv = recv_gathered, .passes_on = right};
const Form kRingAllGatherV{
    .pace = Form::Pace::uneven, .rounds = half, .send = send_gathered, .recv = recv_gathered};

}  // namespace ghostrank
