// Chain broadcast and reduce. In a broadcast the buffer travels from the root once around the
// group, in a reduce the other way to the root. With slices the chain is a pipeline, and every link
// carries the buffer once.
//
//   size 4, root 1     broadcast  1 > 2 > 3 > 0       reduce  0 > 3 > 2 > 1
//
// Steps n-1, bytes (n-1) S in total.
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

int from_root(const ChannelView& s, int p) { return s.wrap(p - s.root); }
bool is_last(const ChannelView& s, int p) { return from_root(s, p) == s.size - 1; }

int rounds(const ChannelView& s, int p) {
  return (from_root(s, p) > 0 ? 1 : 0) + (is_last(s, p) ? 0 : 1);
}

Transfer broadcast_recv(const ChannelView& s, int p, int k) {
  if (from_root(s, p) == 0 || k > 0) return {};
  return {s.wrap(p - 1), s.share};
}

Transfer broadcast_send(const ChannelView& s, int p, int k) {
  if (is_last(s, p) || k < (from_root(s, p) > 0 ? 1 : 0)) return {};
  return {s.wrap(p + 1), s.share};
}

Transfer reduce_recv(const ChannelView& s, int p, int k) {
  if (is_last(s, p) || k > 0) return {};
  return {s.wrap(p + 1), s.share, Combine::reduce};
}

Transfer reduce_send(const ChannelView& s, int p, int k) {
  if (from_root(s, p) == 0 || k < (is_last(s, p) ? 0 : 1)) return {};
  return {s.wrap(p - 1), s.share};
}

}  // namespace

const Form kChainBroadcast{
    .one_way = true, .rounds = rounds, .send = broadcast_send, .recv = broadcast_recv};
const Form kChainReduce{
    .one_way = true, .rounds = rounds, .send = reduce_send, .recv = reduce_recv};

}  // namespace ghostrank
