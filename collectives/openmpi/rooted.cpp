// Open MPI's barriers, its gather with a signal, and the linear parts of its v-variants, derived
// from its source. All messages of a barrier are empty.
//
//   linear               every rank sends to rank 0, then rank 0 sends to every rank
//   recursive doubling   with m the largest power of two <= n, ranks m and above exchange with the
//                        rank m below, which answers last; the others exchange at distance 1, 2, 4,
//                        ...
//   tree                 up a binomial tree to rank 0, the nearest child first, and down again
//
//   size 6, doubling     4>0 5>1   0<>1 2<>3   0<>2 1<>3   0>4 1>5
//
//   linear_sync gather   the root signals to ranks 0, 1, ... in turn that they may send, and waits
//                        for the block; an empty second part follows every block, and the root
//                        receives these at the end
//
// Gather-v and all-to-all-v proceed by rank: 0, 1, ...; the gather-v omits empty blocks.
#include <algorithm>

#include "collectives/common/powers.h"
#include "collectives/openmpi/openmpi.h"

namespace ghostrank {
namespace {

constexpr Block kEmpty{};

// The k-th rank other than r.
int other(int r, int k) { return k < r ? k : k + 1; }

// ---- Barriers

int linear_rounds(const ChannelView& s, int p) {
  if (s.size == 1) return 0;
  return p == 0 ? 2 * (s.size - 1) : 1;
}

Transfer linear_send(const ChannelView& s, int p, int k) {
  if (p > 0) return {0, kEmpty};
  return k < s.size - 1 ? Transfer{} : Transfer{k - s.size + 2, kEmpty};
}

Transfer linear_recv(const ChannelView& s, int p, int k) {
  if (p > 0) return {0, kEmpty};
  return k < s.size - 1 ? Transfer{k + 1, kEmpty} : Transfer{};
}

struct Doubling {
  int m, levels;
  bool above, has_above;
  Doubling(const ChannelView& s, int p)
      : m(power_of_two_below(s.size)),
        levels(floor_log2(m)),
        above(p >= m),
        has_above(p < s.size - m) {}
};

int doubling_rounds(const ChannelView& s, int p) {
  const Doubling d(s, p);
  return d.above ? 1 : d.levels + (d.has_above ? 2 : 0);
}

Transfer doubling_send(const ChannelView& s, int p, int k) {
  const Doubling d(s, p);
  if (d.above) return {p - d.m, kEmpty};
  const int level = d.has_above ? k - 1 : k;
  if (level < 0) return {};
  return {level < d.levels ? p ^ (1 << level) : p + d.m, kEmpty};
}

Transfer doubling_recv(const ChannelView& s, int p, int k) {
  const Doubling d(s, p);
  if (d.above) return {p - d.m, kEmpty};
  const int level = d.has_above ? k - 1 : k;
  if (level < 0) return {p + d.m, kEmpty};
  return level < d.levels ? Transfer{p ^ (1 << level), kEmpty} : Transfer{};
}

// Children of p at distances 1, 2, 4, ...
int children(const ChannelView& s, int p) {
  const int reach = std::min(p == 0 ? s.size : p & -p, s.size - p);
  return ceil_log2(reach);
}

// The children up, an exchange with the parent, the children down.
int tree_rounds(const ChannelView& s, int p) { return 2 * children(s, p) + (p > 0 ? 1 : 0); }

Transfer tree_send(const ChannelView& s, int p, int k) {
  const int below = children(s, p);
  if (k < below) return {};
  if (p > 0 && k == below) return {p - (p & -p), kEmpty};
  return {p + (1 << (tree_rounds(s, p) - 1 - k)), kEmpty};
}

Transfer tree_recv(const ChannelView& s, int p, int k) {
  const int below = children(s, p);
  if (k < below) return {p + (1 << k), kEmpty};
  return p > 0 && k == below ? Transfer{p - (p & -p), kEmpty} : Transfer{};
}

// ---- Gathers

int signalled_rounds(const ChannelView& s, int p) {
  if (s.size == 1) return 0;
  return p == s.root ? 2 * (s.size - 1) : 3;
}

Transfer signalled_send(const ChannelView& s, int p, int k) {
  if (p == s.root) return k < s.size - 1 ? Transfer{other(p, k), kEmpty} : Transfer{};
  return k == 0 ? Transfer{} : Transfer{s.root, k == 1 ? s.block(p) : kEmpty};
}

Transfer signalled_recv(const ChannelView& s, int p, int k) {
  if (p != s.root) return k == 0 ? Transfer{s.root, kEmpty} : Transfer{};
  const bool first = k < s.size - 1;
  const int from = other(p, first ? k : k - (s.size - 1));
  return {from, first ? s.block(from) : kEmpty};
}

int gather_v_rounds(const ChannelView& s, int p) { return p == 0 ? s.size - 1 : 1; }

Transfer unless_empty(const Transfer& t) { return t.block.count == 0 ? Transfer{} : t; }

Transfer gather_v_send(const ChannelView& s, int p, int) {
  return p == 0 ? Transfer{} : unless_empty({0, s.block(p)});
}

Transfer gather_v_recv(const ChannelView& s, int p, int k) {
  return p == 0 ? unless_empty({k + 1, s.block(k + 1)}) : Transfer{};
}

// ---- All-to-all-v

int exchange_rounds(const ChannelView& s, int) { return s.size - 1; }

Transfer exchange_send(const ChannelView& s, int p, int k) {
  return {other(p, k), s.outgoing(p, other(p, k))};
}

Transfer exchange_recv(const ChannelView& s, int p, int k) {
  return {other(p, k), s.incoming(other(p, k), p)};
}

}  // namespace

const Form kOpenMpiLinearBarrier{.rounds = linear_rounds, .send = linear_send, .recv = linear_recv};
const Form kOpenMpiDoublingBarrier{
    .rounds = doubling_rounds, .send = doubling_send, .recv = doubling_recv};
const Form kOpenMpiTreeBarrier{.rounds = tree_rounds, .send = tree_send, .recv = tree_recv};
const Form kOpenMpiSignalledGather{
    .rounds = signalled_rounds, .send = signalled_send, .recv = signalled_recv};
const Form kOpenMpiGatherV{.rounds = gather_v_rounds, .send = gather_v_send, .recv = gather_v_recv};
const Form kOpenMpiLinearAllToAllV{.pace = Form::Pace::eager,
                                   .rounds = exchange_rounds,
                                   .send = exchange_send,
                                   .recv = exchange_recv};

}  // namespace ghostrank
