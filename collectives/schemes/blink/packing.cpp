#include "collectives/schemes/blink/packing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>

#include "collectives/schemes/blink/few_trees.h"

namespace ghostrank {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

std::size_t at(int n, int a, int b) { return static_cast<std::size_t>(a * n + b); }

// A directed edge of a level of Edmonds' algorithm, and the one of the level above that it is.
struct Edge {
  int from, to;
  double length;
  std::size_t original;
};

// The edges of a shortest spanning arborescence: Chu-Liu and Edmonds. Every vertex takes its
// shortest incoming edge; a cycle becomes a vertex, whose other incoming edges cost what they add.
std::vector<std::size_t> shortest_arborescence(int n, int root, const std::vector<Edge>& edges) {
  std::vector<std::size_t> in(n, edges.size());
  for (std::size_t e = 0; e < edges.size(); ++e) {
    std::size_t& best = in[edges[e].to];
    if (edges[e].to != root && edges[e].from != edges[e].to &&
        (best == edges.size() || edges[e].length < edges[best].length))
      best = e;
  }
  // Follow incoming edges; `part`: the number of the vertex that a vertex becomes.
  std::vector<int> part(n, -1), seen(n, -1);
  int parts = 0;
  for (int v = 0; v < n; ++v) {
    int u = v;
    while (u != root && seen[u] == -1) {
      seen[u] = v;
      u = edges[in[u]].from;
    }
    if (u == root || seen[u] != v || part[u] != -1) continue;
    for (int w = edges[in[u]].from; w != u; w = edges[in[w]].from) part[w] = parts;
    part[u] = parts++;
  }
  std::vector<std::size_t> chosen;
  if (parts == 0) {
    for (int v = 0; v < n; ++v)
      if (v != root) chosen.push_back(in[v]);
    return chosen;
  }
  const int cycles = parts;
  for (int v = 0; v < n; ++v)
    if (part[v] == -1) part[v] = parts++;
  std::vector<Edge> above;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const Edge& edge = edges[e];
    if (part[edge.from] == part[edge.to] || edge.to == root) continue;
    const bool enters = part[edge.to] < cycles;
    above.push_back({part[edge.from], part[edge.to],
                     edge.length - (enters ? edges[in[edge.to]].length : 0), e});
  }
  std::vector<bool> replaced(n);
  for (const std::size_t e : shortest_arborescence(parts, part[root], above)) {
    chosen.push_back(above[e].original);
    replaced[edges[chosen.back()].to] = true;
  }
  for (int v = 0; v < n; ++v)
    if (v != root && part[v] < cycles && !replaced[v]) chosen.push_back(in[v]);
  return chosen;
}

std::vector<int> parents_of_arborescence(const LinkGraph& graph, int root,
                                         const std::vector<double>& length) {
  std::vector<Edge> edges;
  for (int a = 0; a < graph.n; ++a)
    for (int b = 0; b < graph.n; ++b)
      if (graph.between(a, b) > 0) edges.push_back({a, b, length[at(graph.n, a, b)], edges.size()});
  std::vector<int> parent(graph.n, -1);
  for (const std::size_t e : shortest_arborescence(graph.n, root, edges))
    parent[edges[e].to] = edges[e].from;
  return parent;
}

// A shortest spanning tree, grown from the root (Prim).
std::vector<int> parents_of_tree(const LinkGraph& graph, int root,
                                 const std::vector<double>& length) {
  std::vector<int> parent(graph.n, -1);
  std::vector<double> nearest(graph.n, kFar);
  std::vector<bool> in(graph.n);
  nearest[root] = 0;
  for (int step = 0; step < graph.n; ++step) {
    int next = -1;
    for (int v = 0; v < graph.n; ++v)
      if (!in[v] && (next == -1 || nearest[v] < nearest[next])) next = v;
    in[next] = true;
    for (int v = 0; v < graph.n; ++v) {
      if (in[v] || graph.between(next, v) == 0 || length[at(graph.n, next, v)] >= nearest[v])
        continue;
      nearest[v] = length[at(graph.n, next, v)];
      parent[v] = next;
    }
  }
  return parent;
}

// Calls visit(edge) with the place of every link of the tree in a graph's rates. Without direction
// a link's place is that with the lower vertex first.
template <typename Visit>
void for_links(const std::vector<int>& parent, Ways ways, const Visit& visit) {
  const int n = static_cast<int>(parent.size());
  for (int v = 0; v < n; ++v) {
    const int u = parent[v];
    if (u == -1) continue;
    visit(ways == Ways::one || u < v ? at(n, u, v) : at(n, v, u));
  }
}

class Multiplicative {
 public:
  Multiplicative(const LinkGraph& graph, Ways ways, int root)
      : graph_(graph), ways_(ways), root_(root), length_(graph.rate.size()), load_(length_) {}

  Packing pack() {
    for (std::size_t e = 0; e < length_.size(); ++e)
      if (counts(e)) length_[e] = 1 / graph_.rate[e];
    double bound = kFar, carried = 0, worst = 0;
    do {
      std::vector<int> tree = shortest();
      double length = 0, all = 0, push = kFar;
      for_links(tree, ways_, [&](std::size_t e) {
        length += length_[e];
        push = std::min(push, graph_.rate[e]);
      });
      for (std::size_t e = 0; e < length_.size(); ++e) all += graph_.rate[e] * length_[e];
      bound = std::min(bound, all / length);
      for_links(tree, ways_, [&](std::size_t e) {
        load_[e] += push;
        worst = std::max(worst, load_[e] / graph_.rate[e]);
        length_[e] *= 1 + kGap / 2 * push / graph_.rate[e];
      });
      carried += push;
      trees_[std::move(tree)] += push;
    } while (carried / worst < (1 - kGap) * bound);
    Packing out{bound, carried / worst, static_cast<int>(trees_.size()), {}};
    for (const auto& [parent, rate] : trees_) out.trees.push_back({parent, rate / worst});
    return out;
  }

 private:
  bool counts(std::size_t e) const {
    const auto n = static_cast<std::size_t>(graph_.n);
    return graph_.rate[e] > 0 && (ways_ == Ways::one || e / n < e % n);
  }
  std::vector<int> shortest() const {
    if (ways_ == Ways::one) return parents_of_arborescence(graph_, root_, length_);
    std::vector<double> both = length_;
    for (int a = 0; a < graph_.n; ++a)
      for (int b = 0; b < a; ++b) both[at(graph_.n, a, b)] = length_[at(graph_.n, b, a)];
    return parents_of_tree(graph_, root_, both);
  }

  const LinkGraph& graph_;
  Ways ways_;
  int root_;
  std::vector<double> length_, load_;  // by link; lengths of links that do not count are 0
  std::map<std::vector<int>, double> trees_;
};

// So many trees, of equal rates, as few as carry enough; nullopt: they would be too many.
std::optional<std::vector<PackedTree>> few_trees(const LinkGraph& graph, Ways ways, int root,
                                                 double bound) {
  for (int k = 1; k <= kMostFewTrees; ++k) {
    const double each = kFewTreesCarry * bound / k;
    std::vector<int> room(graph.rate.size());
    for (std::size_t e = 0; e < room.size(); ++e)
      room[e] = static_cast<int>(std::min<double>(k, std::floor(graph.rate[e] / each + 1e-9)));
    const std::vector<std::vector<int>> trees = ways == Ways::one
                                                    ? disjoint_arborescences(graph.n, room, root, k)
                                                    : disjoint_trees(graph.n, room, root, k);
    if (trees.empty()) continue;
    std::vector<int> load(graph.rate.size());
    for (const std::vector<int>& parent : trees)
      for_links(parent, ways, [&](std::size_t e) { ++load[e]; });
    double rate = kFar;  // at which the worst link is full
    for (std::size_t e = 0; e < load.size(); ++e)
      if (load[e] > 0) rate = std::min(rate, graph.rate[e] / load[e]);
    std::vector<PackedTree> out;
    for (const std::vector<int>& parent : trees) out.push_back({parent, rate});
    return out;
  }
  return std::nullopt;
}

}  // namespace

bool is_connected(const LinkGraph& graph) {
  std::vector<int> reached{0};
  std::vector<bool> in(graph.n);
  in[0] = true;
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (int v = 0; v < graph.n; ++v)
      if (!in[v] && graph.between(reached[i], v) > 0) {
        in[v] = true;
        reached.push_back(v);
      }
  return static_cast<int>(reached.size()) == graph.n;
}

double Packing::rate() const {
  return std::accumulate(trees.begin(), trees.end(), 0.0,
                         [](double sum, const PackedTree& tree) { return sum + tree.rate; });
}

std::shared_ptr<const Packing> pack_trees(const LinkGraph& graph, Ways ways, int root) {
  static std::mutex mutex;
  static std::map<std::tuple<LinkGraph, Ways, int>, std::shared_ptr<const Packing>> known;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Packing>& packing = known[{graph, ways, root}];
  if (packing) return packing;
  Packing made = Multiplicative(graph, ways, root).pack();
  if (auto few = few_trees(graph, ways, root, made.bound)) made.trees = std::move(*few);
  return packing = std::make_shared<const Packing>(std::move(made));
}

std::vector<int> rooted_at(const std::vector<int>& parent, int root) {
  std::vector<int> out = parent;
  int above = -1;
  for (int v = root; v != -1;) {
    const int next = parent[v];
    out[v] = above;
    above = v;
    v = next;
  }
  return out;
}

int depth_of(const std::vector<int>& parent) {
  int deepest = 0;
  for (int v = 0; v < static_cast<int>(parent.size()); ++v) {
    int depth = 0;
    for (int u = v; parent[u] != -1; u = parent[u]) ++depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

int centre_of(const std::vector<int>& parent) {
  int best = 0, least = std::numeric_limits<int>::max();
  for (int v = 0; v < static_cast<int>(parent.size()); ++v) {
    const int depth = depth_of(rooted_at(parent, v));
    if (depth >= least) continue;
    least = depth;
    best = v;
  }
  return best;
}

}  // namespace ghostrank
