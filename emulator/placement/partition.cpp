#include "emulator/placement/partition.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "emulator/common/random.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kSeed = 0x9c1ace;
// Random starts and disturbances; fewer for graphs on which a pass takes long.
constexpr int kStarts = 12, kKicks = 12, kFewStarts = 3, kFewKicks = 3, kManyNodes = 1500;
constexpr int kPatience = 64;  // exchanges without a new best after which a pass ends
constexpr double kAlike = 1e-12;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class Improver {
 public:
  explicit Improver(const NodeGraph& graph) : graph_(graph), outer_(at(graph.nodes())) {}

  // Passes between every two parts until none gains anything. Returns the weight gained.
  double improve(Parts& parts, int count) {
    double all = 0;
    for (double gained = 1; gained > 0;) {
      gained = 0;
      for (int a = 0; a < count; ++a)
        for (int b = a + 1; b < count; ++b) gained += pass(parts, a, b);
      all += gained;
    }
    return all;
  }

 private:
  struct Exchange {
    int a = 0, b = 0;
    double gain = 0;
  };

  // Exchanges pairs of nodes of the parts, the best first and each node once, also where that
  // loses; then keeps the exchanges up to the best moment. Returns what those gain.
  double pass(Parts& parts, int a, int b) {
    free_a_.clear(), free_b_.clear();
    for (int n = 0; n < graph_.nodes(); ++n) {
      if (parts[at(n)] == a) free_a_.push_back(n);
      if (parts[at(n)] == b) free_b_.push_back(n);
    }
    for (const std::vector<int>* nodes : {&free_a_, &free_b_})
      for (const int n : *nodes) outer_[at(n)] = outer_less_inner(parts, n, a + b);
    std::vector<Exchange> done;
    double sum = 0, best = 0, scale = 0;
    std::size_t best_at = 0;
    while (!free_a_.empty() && !free_b_.empty() &&
           done.size() < best_at + static_cast<std::size_t>(kPatience)) {
      const Exchange next = best_exchange(parts, b);
      exchange(parts, next, a, b);
      done.push_back(next);
      sum += next.gain;
      scale = std::max(scale, std::abs(sum));
      if (sum > best + kAlike * scale) best = sum, best_at = done.size();
    }
    while (done.size() > best_at) {  // undo
      std::swap(parts[at(done.back().a)], parts[at(done.back().b)]);
      done.pop_back();
    }
    return best;
  }

  // What moving the node to the other of its two parts gains, whose numbers add up to `both`.
  double outer_less_inner(const Parts& parts, int node, int both) const {
    const int own = parts[at(node)], other = both - own;
    double outer = 0;
    for (const auto& [to, weight] : graph_.of(node)) {
      if (parts[at(to)] == other) outer += weight;
      if (parts[at(to)] == own) outer -= weight;
    }
    return outer;
  }

  // Among each free node of part a with the best of part b, and with its own neighbours there.
  Exchange best_exchange(const Parts& parts, int b) {
    const int best_b = *std::max_element(free_b_.begin(), free_b_.end(), [&](int x, int y) {
      return outer_[at(x)] < outer_[at(y)];
    });
    is_free_.assign(at(graph_.nodes()), false);
    for (const int n : free_b_) is_free_[at(n)] = true;
    Exchange best{free_a_.front(), best_b, 0};
    bool any = false;
    const auto consider = [&](int u, int v, double between) {
      const double gain = outer_[at(u)] + outer_[at(v)] - 2 * between;
      if (any && gain <= best.gain) return;
      best = {u, v, gain};
      any = true;
    };
    for (const int u : free_a_) {
      double to_best = 0;
      for (const auto& [v, weight] : graph_.of(u)) {
        if (v == best_b) to_best = weight;
        if (parts[at(v)] == b && is_free_[at(v)]) consider(u, v, weight);
      }
      consider(u, best_b, to_best);
    }
    return best;
  }

  void exchange(Parts& parts, const Exchange& e, int a, int b) {
    std::swap(parts[at(e.a)], parts[at(e.b)]);
    std::erase(free_a_, e.a);
    std::erase(free_b_, e.b);
    // The node that came is inner to its new mates, and outer to those that it left.
    for (const int moved : {e.a, e.b})
      for (const auto& [n, weight] : graph_.of(moved)) {
        const int part = parts[at(n)];
        if (part != a && part != b) continue;
        outer_[at(n)] += part == parts[at(moved)] ? -2 * weight : 2 * weight;
      }
  }

  const NodeGraph& graph_;
  std::vector<double> outer_;  // of the nodes of the two parts
  std::vector<int> free_a_, free_b_;
  std::vector<bool> is_free_;
};

Parts shuffled(const std::vector<int>& sizes, RandomBits& random) {
  Parts parts;
  for (std::size_t p = 0; p < sizes.size(); ++p)
    parts.insert(parts.end(), at(sizes[p]), static_cast<int>(p));
  for (std::size_t n = parts.size(); n > 1; --n) std::swap(parts[n - 1], parts[random.next() % n]);
  return parts;
}

// Fills one part after the other: from a random node on, always with the node that is bound most to
// the part.
Parts grown(const NodeGraph& graph, const std::vector<int>& sizes, RandomBits& random) {
  constexpr int kNone = -1;
  Parts parts(at(graph.nodes()), kNone);
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    std::vector<double> bound(parts.size());
    for (int size = 0; size < sizes[p]; ++size) {
      std::vector<int> best;
      for (int n = 0; n < graph.nodes(); ++n) {
        if (parts[at(n)] != kNone) continue;
        if (!best.empty() && bound[at(n)] < bound[at(best.front())]) continue;
        if (!best.empty() && bound[at(n)] > bound[at(best.front())]) best.clear();
        best.push_back(n);
      }
      const int next = best[random.next() % best.size()];
      parts[at(next)] = static_cast<int>(p);
      for (const auto& [to, weight] : graph.of(next)) bound[at(to)] += weight;
    }
  }
  return parts;
}

}  // namespace

NodeGraph::NodeGraph(int nodes, std::span<const NodeEdge> edges) : of_(at(nodes)) {
  std::map<std::pair<int, int>, double> sums;
  for (const NodeEdge& edge : edges)
    if (edge.a != edge.b) sums[std::minmax(edge.a, edge.b)] += edge.weight;
  for (const auto& [ends, weight] : sums) {
    of_[at(ends.first)].push_back({ends.second, weight});
    of_[at(ends.second)].push_back({ends.first, weight});
  }
}

double weight_between(const NodeGraph& graph, const Parts& parts) {
  double sum = 0;
  for (int n = 0; n < graph.nodes(); ++n)
    for (const auto& [to, weight] : graph.of(n))
      if (n < to && parts[at(n)] != parts[at(to)]) sum += weight;
  return sum;
}

Parts least_between(const NodeGraph& graph, const std::vector<int>& sizes,
                    std::vector<Parts> starts) {
  const bool many = graph.nodes() > kManyNodes;
  const int count = static_cast<int>(sizes.size());
  RandomBits random{kSeed, static_cast<std::uint64_t>(graph.nodes()), sizes.size()};
  for (int i = 0; i < (many ? kFewStarts : kStarts); ++i)
    starts.push_back(i % 2 == 0 ? grown(graph, sizes, random) : shuffled(sizes, random));
  Improver improver(graph);
  Parts best;
  double least = 0;
  // A start that nothing improves is taken before a later one that is as good.
  const auto take = [&](Parts parts) {
    improver.improve(parts, count);
    const double weight = weight_between(graph, parts);
    if (!best.empty() && weight >= least * (1 - kAlike)) return;
    best = std::move(parts);
    least = weight;
  };
  for (Parts& start : starts) take(std::move(start));
  for (int kick = 0; kick < (many ? kFewKicks : kKicks) && count > 1; ++kick) {
    Parts parts = best;
    for (int i = 0; i < 2 + graph.nodes() / 16; ++i)
      std::swap(parts[random.next() % parts.size()], parts[random.next() % parts.size()]);
    take(std::move(parts));
  }
  return best;
}

}  // namespace ghostrank
