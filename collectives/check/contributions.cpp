// See contributions.h.
#include "collectives/check/contributions.h"

#include <algorithm>
#include <utility>

namespace ghostrank {

// Undefined content is a contribution like any other, of kNoRank, so a sum that includes it stays
// wrong.
Contributions::Contributions() { intern({{kNoRank, 1}}); }

std::uint32_t Contributions::intern(Multiset set) {
  std::uint64_t hash = 0;
  for (const auto& [rank, times] : set)
    hash = (hash ^ (static_cast<std::uint64_t>(rank) << 10 ^ times)) * 0x9e3779b97f4a7c15;
  const auto [begin, end] = numbers_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (sets_[it->second] == set) return it->second;
  sets_.push_back(std::move(set));
  return numbers_.emplace(hash, static_cast<std::uint32_t>(sets_.size() - 1))->second;
}

std::uint32_t Contributions::only(GroupRank r) { return intern({{r, 1}}); }

std::uint32_t Contributions::every(int size) {
  Multiset all;
  for (GroupRank r = 0; r < size; ++r) all.emplace_back(r, 1);
  return intern(std::move(all));
}

std::uint32_t Contributions::sum(std::uint32_t a, std::uint32_t b) {
  if (a > b) std::swap(a, b);
  const std::uint64_t key = (static_cast<std::uint64_t>(a) << 32) | b;
  if (const auto known = sums_.find(key); known != sums_.end()) return known->second;
  const Multiset &left = sets_[a], &right = sets_[b];
  Multiset total;
  auto l = left.begin();
  for (auto r = right.begin(); l != left.end() || r != right.end();) {
    if (r == right.end() || (l != left.end() && l->first < r->first)) {
      total.push_back(*l++);
    } else if (l == left.end() || r->first < l->first) {
      total.push_back(*r++);
    } else {  // saturate: a broken schedule may double without end
      total.emplace_back(l->first, std::min(kMany, l->second + r->second));
      ++l, ++r;
    }
  }
  return sums_[key] = intern(std::move(total));
}

std::string Contributions::describe(const Value& v) const {
  if (v.set == 0) return "undefined content";
  const Multiset& set = sets_[v.set];
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
