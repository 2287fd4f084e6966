#include "profiles/planners/kfac/placement.h"

#include <algorithm>
#include <numeric>

namespace ghostrank {
namespace {

// Fills runs one after the other up to a sum of `most`; returns the run of each factor.
std::vector<int> fill(std::span<const std::uint64_t> dimensions, std::uint64_t most) {
  std::vector<int> out;
  int run = 0;
  std::uint64_t load = 0;
  for (const std::uint64_t dimension : dimensions) {
    if (load > 0 && load + dimension > most) {
      ++run;
      load = 0;
    }
    load += dimension;
    out.push_back(run);
  }
  return out;
}

// The least bound with which fill() needs at most `ranks` runs.
std::uint64_t least_bound(std::span<const std::uint64_t> dimensions, int ranks) {
  std::uint64_t low = *std::max_element(dimensions.begin(), dimensions.end());
  std::uint64_t high = std::accumulate(dimensions.begin(), dimensions.end(), std::uint64_t{0});
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (fill(dimensions, middle).back() < ranks)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace

std::vector<int> place_round_robin(std::size_t factors, int ranks, bool layers_together) {
  const bool apart = !layers_together && static_cast<std::size_t>(ranks) > factors / 2;
  std::vector<int> out;
  for (std::size_t f = 0; f < factors; ++f)
    out.push_back(static_cast<int>((apart ? f : f / 2) % ranks));
  return out;
}

std::vector<int> place_balanced(std::span<const std::uint64_t> dimensions, int ranks,
                                std::uint64_t local_below) {
  std::vector<std::size_t> order(dimensions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return dimensions[a] > dimensions[b]; });
  std::vector<std::uint64_t> load(ranks);
  std::vector<int> out(dimensions.size(), kEveryRank);
  for (const std::size_t f : order) {
    if (dimensions[f] < local_below) break;
    const auto least = std::min_element(load.begin(), load.end());
    *least += dimensions[f];
    out[f] = static_cast<int>(least - load.begin());
  }
  return out;
}

std::vector<int> place_blocks(std::span<const std::uint64_t> dimensions, int ranks) {
  if (dimensions.empty()) return {};
  if (dimensions.size() <= static_cast<std::size_t>(ranks)) {
    std::vector<int> out(dimensions.size());
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  std::vector<int> out = fill(dimensions, least_bound(dimensions, ranks));
  int next = out.back() + 1;  // the first rank without a factor
  for (std::size_t f = 1; f + 1 < out.size() && next < ranks; ++f)
    if (out[f - 1] == out[f] && out[f] != out[f + 1]) out[f] = next++;
  return out;
}

}  // namespace ghostrank
