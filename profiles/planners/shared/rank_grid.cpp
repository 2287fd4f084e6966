#include "profiles/planners/shared/rank_grid.h"

#include <algorithm>

namespace ghostrank {

int RankGrid::ranks() const {
  int product = 1;
  for (const Dimension& d : dimensions_) product *= d.size;
  return product;
}

int RankGrid::coordinate(Rank rank, std::string_view dimension) const {
  for (const Dimension& d : dimensions_) {
    if (d.name == dimension) return rank % d.size;
    rank /= d.size;
  }
  return 0;
}

Rank RankGrid::mirrored(Rank rank, std::string_view dimension) const {
  int stride = 1;
  for (const Dimension& d : dimensions_) {
    if (d.name == dimension) return rank + stride * (d.size - 1 - 2 * (rank / stride % d.size));
    stride *= d.size;
  }
  return rank;
}

std::vector<std::vector<Rank>> RankGrid::groups(
    std::initializer_list<std::string_view> along) const {
  std::size_t size = 1;
  for (const Dimension& d : dimensions_)
    if (std::find(along.begin(), along.end(), d.name) != along.end())
      size *= static_cast<std::size_t>(d.size);
  const auto all = static_cast<std::size_t>(ranks());
  std::vector<std::vector<Rank>> out(all / size);
  for (Rank rank = 0; rank < static_cast<Rank>(all); ++rank) {
    // The group's number: the rank's coordinates in the other dimensions.
    std::size_t number = 0, stride = 1;
    Rank rest = rank;
    for (const Dimension& d : dimensions_) {
      const auto at = static_cast<std::size_t>(rest % d.size);
      rest /= d.size;
      if (std::find(along.begin(), along.end(), d.name) != along.end()) continue;
      number += at * stride;
      stride *= static_cast<std::size_t>(d.size);
    }
    out[number].push_back(rank);
  }
  return out;
}

}  // namespace ghostrank
