// Lists of world ranks, as tests write and compare them.
#pragma once

#include <initializer_list>
#include <vector>

#include "collectives/common/number.h"

namespace ghostrank {

inline std::vector<WorldRank> world_ranks(std::initializer_list<int> numbers) {
  std::vector<WorldRank> ranks;
  for (const int number : numbers) ranks.emplace_back(number);
  return ranks;
}

inline std::vector<int> numbers_of(const std::vector<WorldRank>& ranks) {
  std::vector<int> numbers;
  for (const WorldRank rank : ranks) numbers.push_back(rank.value());
  return numbers;
}

}  // namespace ghostrank
