// Groups whose size is no power of two, for algorithms that pair positions by the bits of a number.
// Let m be the largest power of two <= n, and x = n - m. Of the first 2x positions, the even ones
// fold into their right neighbours: they hand over their data before the algorithm and receive the
// result after it. The m other positions, the survivors, have numbers 0 .. m-1.
//
//   size 6     position  0  1  2  3  4  5      survivor v stands for positions
//              number    -  0  -  1  2  3      [span(v), span(v + 1))
//
// Threading: pure functions.
#pragma once

#include "collectives/common/powers.h"
#include "collectives/generic/textbook.h"

namespace ghostrank {

struct Folding {
  int extra = 0;            // x
  int levels = 0;           // log2 m
  bool folded = false;      // whether this position is folded
  bool has_folded = false;  // whether the left neighbour folds into this one
  int number = 0;           // survivors only

  Folding(const ChannelView& s, int position) {
    extra = s.size - power_of_two_below(s.size);
    levels = floor_log2(s.size);
    const bool paired = position < 2 * extra;
    folded = paired && position % 2 == 0;
    has_folded = paired && !folded;
    number = paired ? position / 2 : position - extra;
  }
  int survivors() const { return 1 << levels; }
  int position(int survivor) const {
    return survivor < extra ? 2 * survivor + 1 : survivor + extra;
  }
  // The first position that the survivor stands for.
  int span(int survivor) const { return survivor < extra ? 2 * survivor : survivor + extra; }
  // Number of rounds; survivors with a folded neighbour have one more before and one more after.
  int rounds(int own) const { return folded ? 2 : own + (has_folded ? 2 : 0); }
  // Round k as a survivor's own round: -1 is the fold, the `own` of rounds() the unfold.
  int own_round(int k) const { return has_folded ? k - 1 : k; }
};

}  // namespace ghostrank
