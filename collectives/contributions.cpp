// See contributions.h.
#include "collectives/contributions.h"

#include <algorithm>
#include <limits>

namespace ghostrank {

// Undefined content is a contribution like any other, by nobody: a sum it went into stays wrong.
Contributions::Contributions() { intern({{kNoRank, 1}}); }

std::uint32_t Contributions::intern(const Multiset& set) {
  const auto [it, is_new] = numbers_.try_emplace(set, static_cast<std::uint32_t>(sets_.size()));
  if (is_new) sets_.push_back(set);
  return it->second;
}

std::uint32_t Contributions::only(Rank r) { return intern({{r, 1}}); }

std::uint32_t Contributions::every(int size) {
  Multiset all;
  for (Rank r = 0; r < size; ++r) all.emplace(r, 1);
  return intern(all);
}

std::uint32_t Contributions::sum(std::uint32_t a, std::uint32_t b) {
  if (a > b) std::swap(a, b);
  const std::uint64_t key = (static_cast<std::uint64_t>(a) << 32) | b;
  if (const auto known = sums_.find(key); known != sums_.end()) return known->second;
  Multiset total = sets_[a];
  for (const auto& [rank, times] : sets_[b])
    total[rank] = std::min(kMany, total[rank] + times);  // doubling errors must not overflow
  return sums_[key] = intern(total);
}

std::string Contributions::describe(const Value& v) const {
  const Multiset& set = sets_[v.set];
  if (set.size() == 1 && set.count(kNoRank) == 1) return "undefined content";
  std::string text = "element " + std::to_string(v.element) + " summed over ranks";
  int listed = 0;
  for (const auto& [rank, times] : set) {
    if (++listed > 12) return text + " ... (" + std::to_string(set.size()) + " in all)";
    text += rank == kNoRank ? " undefined" : ' ' + std::to_string(rank);
    if (times > 1) text += "(x" + std::to_string(times) + ')';
  }
  return text;
}

}  // namespace ghostrank
