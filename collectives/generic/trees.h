// Broadcast and reduce trees in which a rank's place is its distance v from the root around the
// group: a tree says who a place's children are, in the order in which they are told. Parents come
// before children.
//
//   size 10, root 0   nearest first                 binary                   4-nomial
//                     0 > 1 2 4 8   3 > 7           0 > 1 2      3 > 7       0 > 4 8 1 2 3
//                     1 > 3 5 9                     1 > 3 5      4 > 8       4 > 5 6 7
//                     2 > 6                         2 > 4 6      5 > 9       8 > 9
//
//   nearest first     binomial: v tells v + 2^i, for all 2^i > v, the nearest one first; ceil(log2
//   n)
//                     steps
//   binary            v, on level l, tells v + 2^l and v + 2^(l+1)
//   4-nomial          v tells v + r 4^i, r = 1, 2, 3, for every 4^i that divides v, the largest 4^i
//                     first
//
// Bytes (n-1) S in total, in a reduce too. Threading: pure functions.
#pragma once

#include "collectives/generic/textbook.h"

namespace ghostrank {

// The i-th child of v among n, kNoRank when it has fewer.
using TreeChild = int (*)(int n, int v, int i);
int nearest_first_child(int n, int v, int i);
int binary_child(int n, int v, int i);
int four_nomial_child(int n, int v, int i);
int binary_parent(int v);

// When the last one is told, if telling one child takes one step.
int tree_steps(TreeChild child, int n);
// When the root has heard of all, if hearing one child takes one step and the first child is
// awaited first.
int reduce_tree_steps(TreeChild child, int n);

extern const Form kNearestFirstBroadcast, kBinaryBroadcast, kFourNomialBroadcast;
extern const Form kBinaryReduce;  // up the binary tree, the first child awaited first

}  // namespace ghostrank
