// Pairwise all-to-all: in round k every position sends to the position k+1 to its right and
// receives from the position k+1 to its left, so that every link carries one block at a time.
//
//   size 4        round 0    1     2      the number is the position it sends to. The block leaves
//   position 0         1     2     3      the sender's input buffer and goes to the block of the
//   position 1         2     3     0      sender in the receiver's work buffer.
//   position 2         3     0     1
//   position 3         0     1     2
//
// Steps n-1; every rank sends n-1 blocks of S: n(n-1) S in total. A rank sends no message to
// itself. The all-to-all-v is the same with blocks of different sizes.
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

int rounds(const ChannelView& s, int) { return s.size - 1; }

Transfer send(const ChannelView& s, int position, int k) {
  const int to = s.wrap(position + k + 1);
  return {to, s.outgoing(position, to)};
}

Transfer recv(const ChannelView& s, int position, int k) {
  const int from = s.wrap(position - k - 1);
  return {from, s.incoming(from, position)};
}

}  // namespace

const Form kPairwiseAllToAll{.rounds = rounds, .send = send, .recv = recv};
const Form kPairwiseAllToAllV{
    .pace = Form::Pace::uneven, .rounds = rounds, .send = send, .recv = recv};

}  // namespace ghostrank
