// The pictures of a page, as SVG in it. Colours come from the page's style sheet, by class, so that
// they are right in light and in dark.
//
// Units: seconds of the emulated cluster; bytes per step. Threading: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ghostrank {

// A bar for each step, cut into its parts, over one scale.
struct StepBar {
  std::string name;  // may be empty
  double seconds = 0, compute = 0, exposed = 0, bubble = 0;
};
std::string step_bars(const std::vector<StepBar>& bars);

// A column of dots for each run or variant, one for each step, in order. Empty where no column has
// two that differ.
struct StepDots {
  std::string name;
  std::vector<double> seconds;
  double median = 0;
  std::optional<std::pair<double, double>> interval;  // 95 %
};
std::string step_dots(const std::vector<StepDots>& columns);

// Bytes between nodes: sources downwards, targets across, several nodes to a cell where there are
// many. Pairs are named as in a result ("n0.nic1"); others are left out. `nodes_per_cell` tells how
// many were put together.
using NicPairs = std::map<std::pair<std::string, std::string>, std::pair<double, double>>;
struct PairMap {
  std::string svg;  // empty: no pair
  std::size_t nodes = 0, nodes_per_cell = 1;
};
PairMap pair_map(const NicPairs& pairs);

// Bytes of all NICs, the busiest sender first.
struct NicBar {
  std::string name;
  double sent = 0, received = 0;
};
std::string nic_bars(std::vector<NicBar> nics);

}  // namespace ghostrank
