// The checker's symbolic data: which contributions an element is the sum of.
//
// A Value stands for element `element` of the ranks' initial buffers, summed over a multiset of
// ranks. Multisets are interned: equal multisets have equal numbers, and a sum is one table
// look-up. A multiset is kept as runs of ranks, because rings and trees sum up neighbours: all
// partial sums of a ring of n ranks take n^2 runs, not n^3 ranks.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

struct Value {
  std::uint32_t set = 0;  // number of the interned multiset; 0: undefined content
  std::uint32_t element = 0;
  bool operator==(const Value&) const = default;
};

class Contributions {
 public:
  Contributions();

  std::uint32_t only(GroupRank r);  // {r}
  std::uint32_t every(int size);    // {0, ..., size-1}
  std::uint32_t sum(std::uint32_t a, std::uint32_t b);

  // "undefined content", "element 7 summed over ranks 3", "element 7 summed over ranks 0 1 2(x2)".
  std::string describe(const Value& v) const;

 private:
  // Ranks first .. last, each `times` times. In order; neighbours with equal times are one run.
  struct Run {
    GroupRank first, last;
    std::uint32_t times;  // saturates at kMany
    bool operator==(const Run&) const = default;
  };
  using Multiset = std::vector<Run>;
  static constexpr std::uint32_t kMany = 1000;
  std::uint32_t intern(Multiset set);

  std::vector<Multiset> sets_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> numbers_;  // by the multiset's hash
  std::unordered_map<std::uint64_t, std::uint32_t> sums_;
};

}  // namespace ghostrank
