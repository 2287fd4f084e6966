#include "profiles/planners/shared/expert_choice.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace ghostrank {
namespace {

// C(n - without, k) / C(n, k): the probability that k draws from n miss all of `without`.
double none_of(std::uint64_t n, std::uint64_t without, std::uint64_t k) {
  double p = 1;
  for (std::uint64_t i = 0; i < k; ++i)
    p *=
        n < without + i + 1 ? 0 : static_cast<double>(n - without - i) / static_cast<double>(n - i);
  return p;
}

double choose(std::uint64_t n, std::uint64_t k) {
  double out = k > n ? 0 : 1;
  for (std::uint64_t i = 0; i < k && i < n; ++i)
    out *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  return out;
}

// Draws without replacement in proportion to weights: a race of exponential times. After run() the
// first `wanted` of `who` are drawn; zero weights come last.
class Race {
 public:
  explicit Race(std::uint64_t seed) : random_(seed) {}

  void run(std::vector<std::size_t>& who, const std::vector<double>& weights, std::size_t wanted) {
    times_.resize(weights.size());
    for (const std::size_t i : who) times_[i] = -std::log(uniform()) / std::max(weights[i], 1e-300);
    std::nth_element(who.begin(), who.begin() + static_cast<std::ptrdiff_t>(wanted - 1), who.end(),
                     [&](std::size_t a, std::size_t b) { return times_[a] < times_[b]; });
  }

 private:
  double uniform() { return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53; }

  std::mt19937_64 random_;
  std::vector<double> times_;
};

// The probability that a token visits any of the experts `first` to `end` - 1. They may have a part
// of the group that they begin in, whole groups, and a part of the group that they end in.
double reach_of_run(const Experts& experts, std::uint64_t first, std::uint64_t end) {
  const std::uint64_t groups = experts.groups, chosen = experts.group_top_k;
  const std::uint64_t each = experts.count / groups, open = chosen * each, k = experts.top_k;
  const std::uint64_t begin = (first + each - 1) / each;  // the first group that begins in the run
  std::vector<std::uint64_t> parts;
  std::uint64_t whole = 0;
  if (end < begin * each) {
    parts.push_back(end - first);
  } else {
    whole = end / each - begin;
    for (const std::uint64_t part : {begin * each - first, end % each})
      if (part > 0) parts.push_back(part);
  }
  double p = 0;
  for (std::uint64_t taken = 0; taken < 1u << parts.size(); ++taken) {  // a set of `parts`
    std::uint64_t taken_parts = 0, there = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if ((taken >> i & 1) == 0) continue;
      ++taken_parts;
      there += parts[i];
    }
    for (std::uint64_t j = 0; j <= whole && j + taken_parts <= chosen; ++j)
      p += choose(whole, j) * choose(groups - whole - parts.size(), chosen - taken_parts - j) /
           choose(groups, chosen) * (1 - none_of(open, there + j * each, k));
  }
  return p;
}

}  // namespace

double reach(const Experts& experts, std::uint64_t neighbours) {
  const std::uint64_t each = experts.count / experts.groups, runs = experts.count / neighbours;
  if (each % neighbours == 0 || neighbours % each == 0)  // all runs are alike
    return reach_of_run(experts, 0, neighbours);
  double sum = 0;
  for (std::uint64_t run = 0; run < runs; ++run)
    sum += reach_of_run(experts, run * neighbours, (run + 1) * neighbours);
  return sum / static_cast<double>(runs);
}

Choices drawn_choices(const Experts& experts, const std::vector<double>& loads, std::size_t ranks,
                      std::size_t nodes, std::size_t tokens, std::uint64_t seed) {
  const std::size_t count = experts.count, each = count / experts.groups;
  std::vector<double> group_loads(experts.groups);
  for (std::size_t e = 0; e < count; ++e) group_loads[e / each] += loads[e];
  Choices out{std::vector<double>(count), std::vector<double>(ranks), std::vector<double>(nodes)};
  const double share = 1 / static_cast<double>(tokens);
  std::vector<std::size_t> groups(experts.groups), open;
  std::vector<std::size_t> last_of_rank(ranks), last_of_node(nodes);  // last token that visited
  Race race(seed);
  for (std::size_t token = 1; token <= tokens; ++token) {
    std::iota(groups.begin(), groups.end(), std::size_t{0});
    race.run(groups, group_loads, experts.group_top_k);
    open.clear();
    for (std::size_t g = 0; g < experts.group_top_k; ++g)
      for (std::size_t e = 0; e < each; ++e) open.push_back(groups[g] * each + e);
    race.run(open, loads, experts.top_k);
    for (std::size_t i = 0; i < experts.top_k; ++i) {
      const std::size_t rank = open[i] * ranks / count, node = open[i] * nodes / count;
      out.experts[open[i]] += share;
      if (std::exchange(last_of_rank[rank], token) != token) out.ranks[rank] += share;
      if (std::exchange(last_of_node[node], token) != token) out.nodes[node] += share;
    }
  }
  return out;
}

}  // namespace ghostrank
