// Rabenseifner's all-reduce and reduce in Open MPI's variant, derived from its source. Messages,
// sizes and order are exact; the time at which a send is posted is the schedule's.
//
// Of the first 2x ranks, each even rank exchanges halves with its right neighbour; each of the two
// reduces one half, and the odd rank sends its half back. The survivors then halve the vector with
// growing distance, where the lower rank keeps the left part of a window, and go back the same way.
// In an all-reduce they double their windows, and finally the even ranks send the result to the odd
// ones. In a reduce the windows go up a binomial tree to the survivor that is the root. A folded
// root replaces survivor 0, which first sends its window to the root.
//
//   size 4      round 0         round 1        round 2        round 3
//   all-reduce
//     rank 0    <-> 1: R > L    <-> 2: LR > LL <-> 2: LL > LR <-> 1: L > R
//   reduce to rank 1
//     rank 0    <-> 1: R > L    <-> 2: LR > LL 2: > LR        1: L >
//     rank 1    <-> 0: L > R    <-> 3: RR > RL 3: > RR        0: > L
#include <algorithm>
#include <bit>

#include "collectives/common/powers.h"
#include "collectives/openmpi/openmpi.h"

namespace ghostrank {
namespace {

struct Survivor {
  int extra, levels;
  bool paired;  // one of the first 2x ranks
  bool folded;  // an odd one of these
  int number;
  explicit Survivor(const ChannelView& s, int p) {
    extra = s.size - power_of_two_below(s.size);
    levels = floor_log2(s.size);
    paired = p < 2 * extra;
    folded = paired && p % 2 == 1;
    number = paired ? p / 2 : p - extra;
  }
  int position(int v) const { return v < extra ? 2 * v : v + extra; }
};

struct Window {
  Block kept, given;
};

// The window that a survivor keeps after a level of the halving, and the part it gives away in it.
Window halved(const Block& all, int number, int level) {
  Window w{all, {}};
  for (int l = 0; l <= level; ++l) {
    const std::uint64_t left = w.kept.count / 2;
    const Block lower{w.kept.offset, left}, upper{w.kept.offset + left, w.kept.count - left};
    const bool keeps_lower = (number >> l & 1) == 0;
    w = keeps_lower ? Window{lower, upper} : Window{upper, lower};
  }
  return w;
}

// The exchange of halves before the halving takes two rounds.
constexpr int kPairRounds = 2;

Transfer pair_send(const ChannelView& s, const Survivor& v, int p, int k) {
  const Window halves = halved(s.share, 0, 0);
  if (v.folded) return {p - 1, k == 0 ? halves.kept : halves.given};
  return k == 0 ? Transfer{p + 1, halves.given} : Transfer{};
}

Transfer pair_recv(const ChannelView& s, const Survivor& v, int p, int k) {
  const Window halves = halved(s.share, 0, 0);
  if (v.folded) return k == 0 ? Transfer{p - 1, halves.given, Combine::reduce} : Transfer{};
  return k == 0 ? Transfer{p + 1, halves.kept, Combine::reduce} : Transfer{p + 1, halves.given};
}

// ---- All-reduce

int all_reduce_rounds(const ChannelView& s, int p) {
  const Survivor v(s, p);
  return v.folded ? kPairRounds + 1 : 2 * v.levels + (v.paired ? kPairRounds + 1 : 0);
}

Transfer all_reduce_send(const ChannelView& s, int p, int k) {
  const Survivor v(s, p);
  if (v.paired && k < kPairRounds) return pair_send(s, v, p, k);
  if (v.folded) return {};
  const int own = v.paired ? k - kPairRounds : k;
  if (own == 2 * v.levels) return {p + 1, s.share};
  const int level = std::min(own, 2 * v.levels - 1 - own);
  const Window w = halved(s.share, v.number, level);
  return {v.position(v.number ^ (1 << level)), own < v.levels ? w.given : w.kept};
}

Transfer all_reduce_recv(const ChannelView& s, int p, int k) {
  const Survivor v(s, p);
  if (v.paired && k < kPairRounds) return pair_recv(s, v, p, k);
  if (v.folded) return {p - 1, s.share};
  const int own = v.paired ? k - kPairRounds : k;
  if (own == 2 * v.levels) return {};
  const int level = std::min(own, 2 * v.levels - 1 - own);
  const Window w = halved(s.share, v.number, level);
  const bool halving = own < v.levels;
  return {v.position(v.number ^ (1 << level)), halving ? w.kept : w.given,
          halving ? Combine::reduce : Combine::copy};
}

// ---- Reduce

// A rank in the gather: a survivor, except that a folded root replaces survivor 0.
struct Gatherer {
  Survivor self;
  int root;  // number of the survivor that ends with the whole vector
  bool root_folded, is_root;
  Gatherer(const ChannelView& s, int p)
      : self(s, p), root(0), root_folded(false), is_root(p == s.root) {
    const Survivor r(s, s.root);
    root_folded = r.folded;
    root = root_folded ? 0 : r.number;
    if (is_root) self.number = root;
  }
  bool replaced() const { return root_folded && !is_root && !self.folded && self.number == 0; }
  bool gathers() const { return is_root || (!self.folded && !replaced()); }
  int position(const ChannelView& s, int v) const {
    return v == 0 && root_folded ? s.root : self.position(v);
  }
  // Number of windows that it receives, that of the last halving first, before it sends its own.
  int awaited() const {
    const int differing = self.number ^ root;
    return self.levels - static_cast<int>(std::bit_width(static_cast<unsigned>(differing)));
  }
};

// The rounds of a position: pair exchange, halvings, the window for a folded root, gather.
struct ReduceRounds {
  int pairs, halvings, handed_over, gather;
  explicit ReduceRounds(const Gatherer& g)
      : pairs(g.self.paired ? kPairRounds : 0),
        halvings(g.self.folded ? 0 : g.self.levels),
        handed_over(g.replaced() || (g.root_folded && g.is_root) ? 1 : 0),
        gather(g.gathers() ? g.awaited() + (g.is_root ? 0 : 1) : 0) {}
  int all() const { return pairs + halvings + handed_over + gather; }
};

int reduce_rounds(const ChannelView& s, int p) { return ReduceRounds(Gatherer(s, p)).all(); }

Transfer reduce_send(const ChannelView& s, int p, int k) {
  const Gatherer g(s, p);
  const ReduceRounds rounds(g);
  const Survivor& v = g.self;
  if (k < rounds.pairs) return pair_send(s, v, p, k);
  k -= rounds.pairs;
  if (k < rounds.halvings)
    return {v.position(v.number ^ (1 << k)), halved(s.share, v.number, k).given};
  k -= rounds.halvings;
  if (g.replaced()) return {s.root, halved(s.share, 0, v.levels - 1).kept};
  k -= rounds.handed_over;
  if (k < g.awaited()) return {};
  const int level = v.levels - 1 - k;
  return {g.position(s, v.number ^ (1 << level)), halved(s.share, v.number, level).kept};
}

Transfer reduce_recv(const ChannelView& s, int p, int k) {
  const Gatherer g(s, p);
  const ReduceRounds rounds(g);
  const Survivor& v = g.self;
  if (k < rounds.pairs) return pair_recv(s, v, p, k);
  k -= rounds.pairs;
  if (k < rounds.halvings)
    return {v.position(v.number ^ (1 << k)), halved(s.share, v.number, k).kept, Combine::reduce};
  k -= rounds.halvings;
  if (g.replaced()) return {};
  if (k < rounds.handed_over) return {v.position(0), halved(s.share, 0, v.levels - 1).kept};
  k -= rounds.handed_over;
  if (k >= g.awaited()) return {};
  const int level = v.levels - 1 - k;
  return {g.position(s, v.number ^ (1 << level)), halved(s.share, v.number, level).given};
}

}  // namespace

const Form kOpenMpiRabenseifner{
    .rounds = all_reduce_rounds, .send = all_reduce_send, .recv = all_reduce_recv};
const Form kOpenMpiRabenseifnerReduce{
    .rounds = reduce_rounds, .send = reduce_send, .recv = reduce_recv};

}  // namespace ghostrank
