// See contributions.h.
#include "collectives/check/contributions.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ghostrank {

// Undefined content is a contribution like any other, of kNoRank, so a sum that includes it stays
// wrong.
Contributions::Contributions() { intern({{kNoRank, kNoRank, 1}}); }

std::uint32_t Contributions::intern(Multiset set) {
  std::uint64_t hash = 0;
  for (const Run& run : set) {
    const std::uint64_t ranks =
        static_cast<std::uint64_t>(run.first) << 32 | static_cast<std::uint32_t>(run.last);
    hash = (hash ^ ranks) * 0x9e3779b97f4a7c15;
    hash = (hash ^ hash >> 32 ^ run.times) * 0x9e3779b97f4a7c15;
  }
  const auto [begin, end] = numbers_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (sets_[it->second] == set) return it->second;
  sets_.push_back(std::move(set));
  return numbers_.emplace(hash, static_cast<std::uint32_t>(sets_.size() - 1))->second;
}

std::uint32_t Contributions::only(GroupRank r) { return intern({{r, r, 1}}); }

std::uint32_t Contributions::every(int size) { return intern({{0, size - 1, 1}}); }

std::uint32_t Contributions::sum(std::uint32_t a, std::uint32_t b) {
  if (a > b) std::swap(a, b);
  const std::uint64_t key = (static_cast<std::uint64_t>(a) << 32) | b;
  if (const auto known = sums_.find(key); known != sums_.end()) return known->second;
  const Multiset &left = sets_[a], &right = sets_[b];
  constexpr GroupRank kEnd = std::numeric_limits<GroupRank>::max();
  Multiset total;
  auto l = left.begin(), r = right.begin();
  for (GroupRank from = kNoRank; l != left.end() || r != right.end();) {
    const GroupRank of_left = l == left.end() ? kEnd : std::max(l->first, from),
                    of_right = r == right.end() ? kEnd : std::max(r->first, from);
    from = std::min(of_left, of_right);
    const bool in_left = of_left == from, in_right = of_right == from;
    const GroupRank to =
        std::min(in_left ? l->last : of_left - 1, in_right ? r->last : of_right - 1);
    // Saturates, because a broken schedule may double without end.
    const std::uint32_t times =
        std::min(kMany, (in_left ? l->times : 0) + (in_right ? r->times : 0));
    if (!total.empty() && total.back().last + 1 == from && total.back().times == times)
      total.back().last = to;
    else
      total.push_back({from, to, times});
    if (in_left && l->last == to) ++l;
    if (in_right && r->last == to) ++r;
    from = to + 1;
  }
  return sums_[key] = intern(std::move(total));
}

std::string Contributions::describe(const Value& v) const {
  if (v.set == 0) return "undefined content";
  const Multiset& set = sets_[v.set];
  std::string text = "element " + std::to_string(v.element) + " summed over ranks";
  int listed = 0, all = 0;
  for (const Run& run : set) all += run.last - run.first + 1;
  for (const Run& run : set)
    for (GroupRank rank = run.first; rank <= run.last; ++rank) {
      if (++listed > 12) return text + " ... (" + std::to_string(all) + " in all)";
      text += rank == kNoRank ? " undefined" : ' ' + std::to_string(rank);
      if (run.times > 1) text += "(x" + std::to_string(run.times) + ')';
    }
  return text;
}

}  // namespace ghostrank
