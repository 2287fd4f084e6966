// Blink's TreeGen: weighted spanning trees that together use a node's links as far as these go.
//
//   one way     trees directed away from a root, for a broadcast (reversed: for a reduce). A link
//               carries, in each direction, the trees that use it so. The most that trees can carry
//               is the least cut between the root and any other GPU (Edmonds).
//   both ways   trees without direction, for an all-reduce: up a tree, and down it again on the
//               links' other directions. A link carries all trees that have it, each once in either
//               direction. The most: over all partitions of the GPUs, the least rate between the
//               parts over the number of parts less one (Tutte, Nash-Williams).
//
// 1. Multiplicative weights (Garg and Koenemann): a link's length grows with its load; add the
//    shortest spanning tree as far as its narrowest link goes, again and again; scale all so that
//    the worst link is full. Lengths also bound what any packing can carry, so that this ends when
//    it is within kGap of the bound.
// 2. Few trees of one rate: the least k for which k trees, each of 0.95/k of the bound, fit into
// the
//    links; none up to kMostFewTrees: those of step 1 stay. Blink chooses among the trees of step 1
//    by an integer program; here all trees are candidates, by exact algorithms (Lovasz's proof of
//    Edmonds' theorem; matroid union).
//
// Units: any, for rates. Threading: packings that were made are kept and shared, behind a mutex.
#pragma once

#include <memory>
#include <vector>

namespace ghostrank {

// Rates between vertices 0 .. n-1, the same in both directions; 0: no link.
struct LinkGraph {
  int n = 0;
  std::vector<double> rate;
  double between(int a, int b) const { return rate[static_cast<std::size_t>(a * n + b)]; }
  auto operator<=>(const LinkGraph&) const = default;
};
bool is_connected(const LinkGraph& graph);

enum class Ways : unsigned char { one, both };

struct PackedTree {
  std::vector<int> parent;  // of the root: -1
  double rate = 0;
};

struct Packing {
  double bound = 0;       // no packing carries more
  double fractional = 0;  // what the trees of step 1 carry, at least (1 - kGap) bound
  int fractional_trees = 0;
  std::vector<PackedTree> trees;  // those to be used
  double rate() const;
};

inline constexpr double kGap = 0.02, kFewTreesCarry = 0.95;
inline constexpr int kMostFewTrees = 32;

// The graph is connected and has two vertices or more.
std::shared_ptr<const Packing> pack_trees(const LinkGraph& graph, Ways ways, int root);

// The same tree with another root.
std::vector<int> rooted_at(const std::vector<int>& parent, int root);
// The vertex from which the farthest other one is nearest, the first of several.
int centre_of(const std::vector<int>& parent);
int depth_of(const std::vector<int>& parent);  // links from the root to the farthest vertex

}  // namespace ghostrank
