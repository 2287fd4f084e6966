// Disjoint spanning trees in a graph with so many edges side by side between two vertices.
//
// Returns k trees as parents by vertex (-1 at the root), or none if there are no k. `room`: edges
// from a to b at a * n + b, the same back. Threading: pure functions.
#pragma once

#include <vector>

namespace ghostrank {

// Trees directed away from the root; each direction of a pair has its own edges. Lovasz: a tree may
// grow by an edge if, without it, as many paths as there are trees to come still lead to the edge's
// end.
std::vector<std::vector<int>> disjoint_arborescences(int n, std::vector<int> room, int root, int k);

// Trees that share the edges of both directions. Matroid union: an edge that closes a cycle in
// every tree may take the place of one that fits into another.
std::vector<std::vector<int>> disjoint_trees(int n, const std::vector<int>& room, int root, int k);

}  // namespace ghostrank
