// Dissemination barrier: in round k every position sends an empty message to the position 2^k to
// its right, which thereby hears of all positions that the sender has heard of. After round k a
// position knows that 2^(k+1) positions, itself included, have entered the barrier.
//
//   size 5        round 0    1     2      the number is the position it sends an empty message to
//   position 0         1     2     4
//   position 1         2     3     0
//   position 2         3     4     1
//   position 3         4     0     2
//   position 4         0     1     3
//
// Steps ceil(log2 n), no bytes, n ceil(log2 n) messages in total.
#include "collectives/common/powers.h"
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

int rounds(const ChannelView& s, int) { return ceil_log2(s.size); }

Transfer send(const ChannelView& s, int position, int k) {
  return {s.wrap(position + (1 << k)), s.share};
}

Transfer recv(const ChannelView& s, int position, int k) {
  return {s.wrap(position - (1 << k)), s.share};
}

}  // namespace

const Form kDisseminationBarrier{.rounds = rounds, .send = send, .recv = recv};

}  // namespace ghostrank
