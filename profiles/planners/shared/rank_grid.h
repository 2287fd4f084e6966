// Ranks as points of a grid of parallel dimensions, and the groups along some of them.
//
//   order "tp-cp-ep-dp-pp", sizes tp 2, dp 2, pp 2        rank = tp + 2 dp + 4 pp
//   groups along {tp}: {0 1} {2 3} {4 5} {6 7}            along {dp, pp}: {0 2 4 6} {1 3 5 7}
//
// The leftmost dimension of an order varies fastest, as in Megatron's parallel_state. Members of a
// group are in ascending order of their ranks. Threading: plain values.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/common/number.h"

namespace ghostrank {

struct Dimension {
  std::string name;
  int size = 1;
};

class RankGrid {
 public:
  explicit RankGrid(std::vector<Dimension> fastest_first) : dimensions_(std::move(fastest_first)) {}

  int ranks() const;
  int coordinate(WorldRank rank, std::string_view dimension) const;
  // The rank with coordinate size - 1 - c in `dimension`, where `rank` has c; the other coordinates
  // are the same.
  WorldRank mirrored(WorldRank rank, std::string_view dimension) const;
  // The groups of ranks that differ only in the dimensions `along`.
  std::vector<std::vector<WorldRank>> groups(std::initializer_list<std::string_view> along) const;

 private:
  std::vector<Dimension> dimensions_;
};

}  // namespace ghostrank
