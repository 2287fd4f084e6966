// Linear algorithms: every sender sends its blocks directly to their receivers.
//
//   gather       everyone > root                       1 block each; the root receives in order
//   scatter      root > everyone, in order             1 block each
//   broadcast    root > everyone, in order             the whole buffer each
//   all-to-all   everyone > p+1, p+2, ..., p-1         all sends leave first; then p receives from
//                                                      p-1, p-2, ...
//   all-gather-v everyone > p+1, p+2, ..., p-1         the same; p sends its own block to all
//
// Steps n-1: one rank receives or sends n-1 messages. Bytes (n-1) S in total; all-to-all n(n-1) S.
// The all-to-all-v is the all-to-all with blocks of different sizes.
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

// The k-th position other than the root.
int other(const ChannelView& s, int k) { return k < s.root ? k : k + 1; }

int rounds(const ChannelView& s, int p) { return p == s.root ? s.size - 1 : 1; }

Transfer gather_send(const ChannelView& s, int p, int) {
  return p == s.root ? Transfer{} : Transfer{s.root, s.block(p)};
}

Transfer gather_recv(const ChannelView& s, int p, int k) {
  return p == s.root ? Transfer{other(s, k), s.block(other(s, k))} : Transfer{};
}

Transfer scatter_send(const ChannelView& s, int p, int k) {
  return p == s.root ? Transfer{other(s, k), s.block(other(s, k))} : Transfer{};
}

Transfer scatter_recv(const ChannelView& s, int p, int) {
  return p == s.root ? Transfer{} : Transfer{s.root, s.block(p)};
}

Transfer broadcast_send(const ChannelView& s, int p, int k) {
  return p == s.root ? Transfer{other(s, k), s.share} : Transfer{};
}

Transfer broadcast_recv(const ChannelView& s, int p, int) {
  return p == s.root ? Transfer{} : Transfer{s.root, s.share};
}

int all_rounds(const ChannelView& s, int) { return s.size - 1; }

Transfer exchange_send(const ChannelView& s, int p, int k) {
  const int to = s.wrap(p + k + 1);
  return {to, s.outgoing(p, to)};
}

Transfer exchange_recv(const ChannelView& s, int p, int k) {
  const int from = s.wrap(p - k - 1);
  return {from, s.incoming(from, p)};
}

Transfer spread_send(const ChannelView& s, int p, int k) { return {s.wrap(p + k + 1), s.block(p)}; }

Transfer spread_recv(const ChannelView& s, int p, int k) {
  const int from = s.wrap(p - k - 1);
  return {from, s.block(from)};
}

}  // namespace

const Form kLinearGather{.rounds = rounds, .send = gather_send, .recv = gather_recv};
const Form kLinearScatter{.rounds = rounds, .send = scatter_send, .recv = scatter_recv};
const Form kLinearBroadcast{.rounds = rounds, .send = broadcast_send, .recv = broadcast_recv};
const Form kLinearAllToAll{
    .pace = Form::Pace::eager, .rounds = all_rounds, .send = exchange_send, .recv = exchange_recv};
const Form kLinearAllGatherV{
    .pace = Form::Pace::eager, .rounds = all_rounds, .send = spread_send, .recv = spread_recv};

}  // namespace ghostrank
