// Open MPI's own variants of textbook algorithms, derived from its source. Messages, sizes and
// order are exact; the time at which a send is posted is the schedule's.
//
// Ring all-reduce: every rank sends to rank+1; rank r sends block r first; the first ranks have the
// longer blocks.
//
//   size 4    reduce-scatter   all-gather      the number is the block that the rank sends
//   rank 0    0>   3>   2>  |  1>   0>   3>
//   rank 1    1>   0>   3>  |  2>   1>   0>
//
// Linear all-reduce: every rank sends to rank 0, which receives from the last rank first and then
// sends the result to ranks 1, 2, ...
//
// Neighbour exchange, an all-gather for groups of even size: the ranks of a pair exchange their own
// blocks, then every pair exchanges pairs of blocks, in turn with the pair to one side and the pair
// to the other; n/2 rounds.
//
//   size 6    rank 0: <-> 1 block 0    <-> 5 blocks 0 1 > 4 5    <-> 1 blocks 4 5 > 2 3
//
// Linear all-to-all: a rank posts all sends first, to p-1, p-2, ...
#include "collectives/openmpi/openmpi.h"

namespace ghostrank {
namespace {

// ---- Ring all-reduce

int ring_rounds(const ChannelView& s, int) { return 2 * (s.size - 1); }

Transfer ring_send(const ChannelView& s, int p, int k) {
  return {s.wrap(p + 1), s.piece(s.wrap(p - k))};
}

Transfer ring_recv(const ChannelView& s, int p, int k) {
  return {s.wrap(p - 1), s.piece(s.wrap(p - 1 - k)),
          k < s.size - 1 ? Combine::reduce : Combine::copy};
}

// ---- Linear all-reduce

int linear_rounds(const ChannelView& s, int p) {
  if (s.size == 1) return 0;
  return p == 0 ? 2 * (s.size - 1) : 2;
}

Transfer linear_send(const ChannelView& s, int p, int k) {
  if (p > 0) return k == 0 ? Transfer{0, s.share} : Transfer{};
  return k < s.size - 1 ? Transfer{} : Transfer{k - (s.size - 1) + 1, s.share};
}

Transfer linear_recv(const ChannelView& s, int p, int k) {
  if (p > 0) return k == 1 ? Transfer{0, s.share} : Transfer{};
  return k < s.size - 1 ? Transfer{s.size - 1 - k, s.share, Combine::reduce} : Transfer{};
}

// ---- Neighbour exchange

int neighbor_rounds(const ChannelView& s, int) { return s.size / 2; }

// Even ranks begin with their right neighbour, odd ranks with their left one.
int neighbor(const ChannelView& s, int p, int k) {
  return s.wrap((p + k) % 2 == 0 ? p + 1 : p - 1);
}

// The first block of the pair that arrives in round k; in each later round it lies further away, on
// the side it comes from.
int pair_received(const ChannelView& s, int p, int k) {
  const int ahead = (k + 1) / 2 * 2;
  return s.wrap(p - p % 2 + ((p + k) % 2 == 0 ? ahead : -ahead));
}

Block pair(const ChannelView& s, int first) {
  return {s.block(first).offset, s.blocks(first, 2).count};
}

Transfer neighbor_send(const ChannelView& s, int p, int k) {
  return {neighbor(s, p, k), k == 0 ? s.block(p) : pair(s, pair_received(s, p, k - 1))};
}

Transfer neighbor_recv(const ChannelView& s, int p, int k) {
  const int from = neighbor(s, p, k);
  return {from, k == 0 ? s.block(from) : pair(s, pair_received(s, p, k))};
}

// ---- Linear all-to-all

int exchange_rounds(const ChannelView& s, int) { return s.size - 1; }

Transfer exchange_send(const ChannelView& s, int p, int k) {
  const int to = s.wrap(p - k - 1);
  return {to, s.outgoing(p, to)};
}

Transfer exchange_recv(const ChannelView& s, int p, int k) {
  const int from = s.wrap(p + k + 1);
  return {from, s.incoming(from, p)};
}

}  // namespace

const Form kOpenMpiRingAllReduce{
    .unit = Form::Unit::piece, .rounds = ring_rounds, .send = ring_send, .recv = ring_recv};
const Form kOpenMpiLinearAllReduce{
    .rounds = linear_rounds, .send = linear_send, .recv = linear_recv};
const Form kOpenMpiNeighborExchange{
    .rounds = neighbor_rounds, .send = neighbor_send, .recv = neighbor_recv};
const Form kOpenMpiLinearAllToAll{.pace = Form::Pace::eager,
                                  .rounds = exchange_rounds,
                                  .send = exchange_send,
                                  .recv = exchange_recv};

}  // namespace ghostrank
