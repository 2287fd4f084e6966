// Broadcast and reduce trees over positions v, the distance of a rank from the root around the
// group. A tree lists the children of v in the order in which v sends to them. Parents come before
// children.
//
// clang-format off
//   size 10, root 0   nearest first         binary               4-nomial
//                     0 > 1 2 4 8  3 > 7    0 > 1 2     3 > 7    0 > 4 8 1 2 3
//                     1 > 3 5 9             1 > 3 5     4 > 8    4 > 5 6 7
//                     2 > 6                 2 > 4 6     5 > 9    8 > 9
//
//   nearest first     binomial: v sends to v + 2^i for all 2^i > v, the nearest first;
//                     ceil(log2 n) steps
//   binary            v, on level l, sends to v + 2^l and v + 2^(l+1)
//   4-nomial          v sends to v + r 4^i, r = 1, 2, 3, for every i with 4^(i+1) dividing v, the
//                     largest i first
// clang-format on
//
// Bytes (n-1) S in total, for a reduce too. Threading: pure functions.
#pragma once

#include "collectives/generic/textbook.h"

namespace ghostrank {

// The i-th child of v in a tree over 0 .. n-1; kNoRank if v has fewer children.
using TreeChild = int (*)(int n, int v, int i);
int nearest_first_child(int n, int v, int i);
int binary_child(int n, int v, int i);
int four_nomial_child(int n, int v, int i);
int binary_parent(int v);

// The step in which the last position receives, if each send takes one step.
int tree_steps(TreeChild child, int n);
// The step in which the root has received from all children, if each receive takes one step and
// every position receives from its first child first.
int reduce_tree_steps(TreeChild child, int n);

extern const Form kNearestFirstBroadcast, kBinaryBroadcast, kFourNomialBroadcast;
extern const Form kBinaryReduce;  // up the binary tree; receives from the first child first

}  // namespace ghostrank
