// See trees.h.
#include "collectives/generic/trees.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace ghostrank {
namespace {

int width(int v) { return std::bit_width(static_cast<unsigned>(v)); }

int nearest_first_parent(int v) { return v - (1 << (width(v) - 1)); }

int four_nomial_parent(int v) {
  int unit = 4;
  while (v % unit == 0) unit *= 4;
  return v - v % unit;
}

template <TreeChild kChild>
int rounds(const ChannelView& s, int p) {
  const int v = s.wrap(p - s.root);
  int children = 0;
  while (kChild(s.size, v, children) != kNoRank) ++children;
  return children + (v > 0 ? 1 : 0);
}

template <TreeChild kChild>
Transfer send(const ChannelView& s, int p, int k) {
  const int v = s.wrap(p - s.root), i = v > 0 ? k - 1 : k;
  if (i < 0) return {};
  return {s.wrap(s.root + kChild(s.size, v, i)), s.share};
}

template <TreeChild kChild>
Transfer reduce_recv(const ChannelView& s, int p, int k) {
  const int child = kChild(s.size, s.wrap(p - s.root), k);
  if (child == kNoRank) return {};
  return {s.wrap(s.root + child), s.share, Combine::reduce};
}

template <TreeChild kChild, int (*kParent)(int)>
Transfer reduce_send(const ChannelView& s, int p, int k) {
  const int v = s.wrap(p - s.root);
  if (kChild(s.size, v, k) != kNoRank) return {};
  return {s.wrap(s.root + kParent(v)), s.share};
}

template <int (*kParent)(int)>
Transfer recv(const ChannelView& s, int p, int k) {
  const int v = s.wrap(p - s.root);
  if (v == 0 || k > 0) return {};
  return {s.wrap(s.root + kParent(v)), s.share};
}

}  // namespace

int nearest_first_child(int n, int v, int i) {
  const int child = v + (1 << (width(v) + i));
  return child < n ? child : kNoRank;
}

int binary_child(int n, int v, int i) {
  const int child = v + (1 << (width(v + 1) - 1)) * (i + 1);
  return i < 2 && child < n ? child : kNoRank;
}

int four_nomial_child(int n, int v, int i) {
  int unit = 1;
  while (unit * 4 < n && v % (unit * 4) == 0) unit *= 4;
  for (; unit > 0; unit /= 4)
    for (int r = 1; r < 4; ++r)
      if (v + r * unit < n && v % (unit * 4) == 0 && i-- == 0) return v + r * unit;
  return kNoRank;
}

int binary_parent(int v) {
  const int level = width(v + 1) - 1, half = 1 << (level - 1);
  const int above = v - half;  // one level up, unless v is a second child
  return above >= 2 * half - 1 ? above - half : above;
}

int tree_steps(TreeChild child, int n) {
  std::vector<int> told(n, 0);
  int last = 0;
  for (int v = 0; v < n; ++v)
    for (int i = 0, c = child(n, v, 0); c != kNoRank; c = child(n, v, ++i)) {
      told[c] = told[v] + i + 1;
      last = std::max(last, told[c]);
    }
  return last;
}

int reduce_tree_steps(TreeChild child, int n) {
  std::vector<int> done(n, 0);
  for (int v = n - 1; v >= 0; --v)
    for (int i = 0, c = child(n, v, 0); c != kNoRank; c = child(n, v, ++i)) {
      int& own = done[v];
      own = std::max(own, done[c]) + 1;
    }
  return done.front();
}

const Form kNearestFirstBroadcast{.rounds = rounds<nearest_first_child>,
                                  .send = send<nearest_first_child>,
                                  .recv = recv<nearest_first_parent>};
const Form kBinaryBroadcast{
    .rounds = rounds<binary_child>, .send = send<binary_child>, .recv = recv<binary_parent>};
const Form kBinaryReduce{.rounds = rounds<binary_child>,
                         .send = reduce_send<binary_child, binary_parent>,
                         .recv = reduce_recv<binary_child>};
const Form kFourNomialBroadcast{.rounds = rounds<four_nomial_child>,
                                .send = send<four_nomial_child>,
                                .recv = recv<four_nomial_parent>};

}  // namespace ghostrank
