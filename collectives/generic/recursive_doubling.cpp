// Recursive-doubling all-reduce: in round k every position exchanges the whole buffer with the
// partner whose number differs in bit k, and reduces.
//
//   size 4     round 0     round 1
//   0 1 2 3    0<>1 2<>3   0<>2 1<>3
//
// For other sizes positions fold into their neighbours (folding.h) and receive the result at the
// end.
//
//   size 6     fold        round 0     round 1     unfold
//              0>1 2>3     1<>3 4<>5   1<>4 3<>5   1>0 3>2
//
// Steps log2 m, and 2 more if x > 0; bytes (m log2 m + 2x) S in total.
#include "collectives/generic/folding.h"
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

int rounds(const ChannelView& s, int position) {
  const Folding f(s, position);
  return f.rounds(f.levels);
}

// The position whose number differs in bit `level`.
int partner(const Folding& f, int level) { return f.position(f.number ^ (1 << level)); }

Transfer send(const ChannelView& s, int position, int k) {
  const Folding f(s, position);
  if (f.folded) return k == 0 ? Transfer{position + 1, s.share} : Transfer{};
  const int level = f.own_round(k);
  if (level < 0) return {};
  return {level < f.levels ? partner(f, level) : position - 1, s.share};
}

Transfer recv(const ChannelView& s, int position, int k) {
  const Folding f(s, position);
  if (f.folded) return k == 1 ? Transfer{position + 1, s.share} : Transfer{};
  const int level = f.own_round(k);
  if (level >= f.levels) return {};
  return {level < 0 ? position - 1 : partner(f, level), s.share, Combine::reduce};
}

}  // namespace

const Form kRecursiveDoublingAllReduce{.rounds = rounds, .send = send, .recv = recv};

}  // namespace ghostrank
