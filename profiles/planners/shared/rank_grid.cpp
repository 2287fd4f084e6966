#include "profiles/planners/shared/rank_grid.h"

#include <algorithm>

namespace ghostrank {

int RankGrid::ranks() const {
  int product = 1;
  for (const Dimension& d : dimensions_) product *= d.size;
  return product;
}

int RankGrid::coordinate(WorldRank rank, std::string_view dimension) const {
  int rest = rank.value();
  for (const Dimension& d : dimensions_) {
    if (d.name == dimension) return rest % d.size;
    rest /= d.size;
  }
  return 0;
}

WorldRank RankGrid::mirrored(WorldRank rank, std::string_view dimension) const {
  int stride = 1;
  for (const Dimension& d : dimensions_) {
    if (d.name == dimension)
      return rank + stride * (d.size - 1 - 2 * (rank.value() / stride % d.size));
    stride *= d.size;
  }
  return rank;
}

std::vector<std::vector<WorldRank>> RankGrid::groups(
    std::initializer_list<std::string_view> along) const {
  int size = 1;
  for (const Dimension& d : dimensions_)
    if (std::find(along.begin(), along.end(), d.name) != along.end()) size *= d.size;
  std::vector<std::vector<WorldRank>> out(ranks() / size);
  for (const WorldRank rank : each<WorldRank>(ranks())) {
    // The group's number: the rank's coordinates in the other dimensions.
    int number = 0, stride = 1, rest = rank.value();
    for (const Dimension& d : dimensions_) {
      const int at = rest % d.size;
      rest /= d.size;
      if (std::find(along.begin(), along.end(), d.name) != along.end()) continue;
      number += at * stride;
      stride *= d.size;
    }
    out[number].push_back(rank);
  }
  return out;
}

}  // namespace ghostrank
