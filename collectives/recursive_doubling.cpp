// Recursive-doubling all-reduce: in round k everyone exchanges the whole buffer with the partner
// whose number differs in bit k, and reduces.
//
//   size 4     round 0     round 1
//   0 1 2 3    0<>1 2<>3   0<>2 1<>3
//
// For other sizes let m be the largest power of two in n and x = n - m. Of the first 2x positions,
// the even ones hand their data to their right neighbour and wait (fold); the m others play the
// rounds above under new numbers; then the even ones are told the result (unfold).
//
//   size 6     fold        round 0     round 1     unfold
//              0>1 2>3     1<>3 4<>5   1<>4 3<>5   1>0 3>2
//
// Steps log2 m, and 2 more if x > 0; bytes (m log2 m + 2x) S in total.
#include <bit>

#include "collectives/generic.h"

namespace ghostrank {
namespace {

struct Place {
  int extra;   // x
  int levels;  // log2 m
  bool folded;
  bool has_folded;  // a left neighbour folds into this position
};

Place place(const Shape& s, int position) {
  const auto m = std::bit_floor(static_cast<unsigned>(s.size));
  const int extra = s.size - static_cast<int>(m);
  const bool paired = position < 2 * extra;
  return {extra, static_cast<int>(std::bit_width(m)) - 1, paired && position % 2 == 0,
          paired && position % 2 == 1};
}

int rounds(const Shape& s, int position) {
  const Place p = place(s, position);
  if (p.folded) return 2;
  return p.levels + (p.has_folded ? 2 : 0);
}

// The position whose new number differs in bit `k`.
int partner(const Place& p, int position, int k) {
  const int number = p.has_folded ? position / 2 : position - p.extra;
  const int other = number ^ (1 << k);
  return other < p.extra ? 2 * other + 1 : other + p.extra;
}

Transfer send(const Shape& s, int position, int k) {
  const Place p = place(s, position);
  if (p.folded) return k == 0 ? Transfer{position + 1, s.share} : Transfer{};
  const int level = p.has_folded ? k - 1 : k;
  if (level < 0) return {};
  return {level < p.levels ? partner(p, position, level) : position - 1, s.share};
}

Transfer recv(const Shape& s, int position, int k) {
  const Place p = place(s, position);
  if (p.folded) return k == 1 ? Transfer{position + 1, s.share} : Transfer{};
  const int level = p.has_folded ? k - 1 : k;
  if (level >= p.levels) return {};
  return {level < 0 ? position - 1 : partner(p, position, level), s.share, Combine::reduce};
}

}  // namespace

const Form kRecursiveDoublingAllReduce{.rounds = rounds, .send = send, .recv = recv};

}  // namespace ghostrank
