#include "collectives/schemes/blink/few_trees.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ghostrank {
namespace {

std::size_t edge_at(int n, int a, int b) { return static_cast<std::size_t>(a * n + b); }

// Whether `paths` paths lead from the root to a vertex, no two over one edge.
bool has_paths(int n, std::vector<int> room, int root, int target, int paths) {
  for (; paths > 0; --paths) {
    std::vector<int> before(n, -1), reached{root};
    before[root] = root;
    for (std::size_t i = 0; i < reached.size() && before[target] == -1; ++i)
      for (int v = 0; v < n; ++v)
        if (before[v] == -1 && room[edge_at(n, reached[i], v)] > 0) {
          before[v] = reached[i];
          reached.push_back(v);
        }
    if (before[target] == -1) return false;
    for (int v = target; v != root; v = before[v]) {
      --room[edge_at(n, before[v], v)];
      ++room[edge_at(n, v, before[v])];
    }
  }
  return true;
}

// A tree that leaves `paths` paths to every vertex; `room` loses its edges. Short branches first.
std::vector<int> grow(int n, std::vector<int>& room, int root, int paths) {
  std::vector<int> parent(n, -1), in{root};
  const auto is_in = [&](int v) { return v == root || parent[v] != -1; };
  const auto add_one = [&] {
    for (const int u : in)
      for (int v = 0; v < n; ++v) {
        int& edges = room[edge_at(n, u, v)];
        if (is_in(v) || edges == 0) continue;
        --edges;
        if (has_paths(n, room, root, v, paths)) {
          parent[v] = u;
          in.push_back(v);
          return true;
        }
        ++edges;
      }
    return false;
  };
  while (static_cast<int>(in.size()) < n)
    if (!add_one()) return {};
  return parent;
}

// One of the edges side by side between two vertices.
struct ParallelEdge {
  int a, b;
};

// Forests that share no edge. An edge is known by its number.
class Forests {
 public:
  Forests(int n, int k, std::vector<ParallelEdge> edges)
      : n_(n), edges_(std::move(edges)), in_(edges_.size(), -1), forests_(k) {}

  // Puts an edge into a forest, moving others from forest to forest. False: no forest has room.
  bool insert(int edge);
  std::vector<int> parents(std::size_t forest, int root) const { return reach(forest, root).first; }

 private:
  // From a vertex: the vertex and the edge before each vertex of its tree; -1: none.
  std::pair<std::vector<int>, std::vector<int>> reach(std::size_t forest, int from) const;
  void move(int edge, int to) {
    if (in_[edge] != -1) std::erase(forests_[in_[edge]], edge);
    in_[edge] = to;
    forests_[to].push_back(edge);
  }

  int n_;
  std::vector<ParallelEdge> edges_;
  std::vector<int> in_;  // the forest of each edge; -1: none
  std::vector<std::vector<int>> forests_;
};

std::pair<std::vector<int>, std::vector<int>> Forests::reach(std::size_t forest, int from) const {
  std::vector<int> before(n_, -1), by(n_, -1), reached{from};
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const int e : forests_[forest]) {
      const ParallelEdge& edge = edges_[e];
      if (edge.a != reached[i] && edge.b != reached[i]) continue;
      const int v = edge.a == reached[i] ? edge.b : edge.a;
      if (v == from || before[v] != -1) continue;
      before[v] = reached[i];
      by[v] = e;
      reached.push_back(v);
    }
  return {std::move(before), std::move(by)};
}

// Breadth first, so that the chain of moves is the shortest one; a longer one could close a cycle.
bool Forests::insert(int edge) {
  std::vector<int> taker(edges_.size(), -1);  // the edge that takes an edge's place
  std::vector<int> waiting{edge};
  std::vector<bool> known(edges_.size());
  known[edge] = true;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const int e = waiting[i];
    for (int f = 0; f < static_cast<int>(forests_.size()); ++f) {
      if (in_[e] == f) continue;
      const auto [before, by] = reach(f, edges_[e].a);
      if (before[edges_[e].b] == -1) {
        for (int moved = e, to = f; moved != -1; moved = taker[moved]) {
          const int left = in_[moved];
          move(moved, to);
          to = left;
        }
        return true;
      }
      for (int v = edges_[e].b; v != edges_[e].a; v = before[v]) {
        if (known[by[v]]) continue;
        known[by[v]] = true;
        taker[by[v]] = e;
        waiting.push_back(by[v]);
      }
    }
  }
  return false;
}

}  // namespace

std::vector<std::vector<int>> disjoint_arborescences(int n, std::vector<int> room, int root,
                                                     int k) {
  for (int v = 0; v < n; ++v)
    if (v != root && !has_paths(n, room, root, v, k)) return {};
  std::vector<std::vector<int>> trees;
  while (static_cast<int>(trees.size()) < k)
    trees.push_back(grow(n, room, root, k - 1 - static_cast<int>(trees.size())));
  return trees;
}

std::vector<std::vector<int>> disjoint_trees(int n, const std::vector<int>& room, int root, int k) {
  std::vector<ParallelEdge> edges;
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b)
      for (int i = 0; i < room[edge_at(n, a, b)]; ++i) edges.push_back({a, b});
  const int needed = k * (n - 1);
  Forests forests(n, k, edges);
  int inserted = 0;
  for (int e = 0; e < static_cast<int>(edges.size()) && inserted < needed; ++e)
    inserted += forests.insert(e);
  if (inserted < needed) return {};
  std::vector<std::vector<int>> trees;
  for (int f = 0; f < k; ++f) trees.push_back(forests.parents(f, root));
  return trees;
}

}  // namespace ghostrank
