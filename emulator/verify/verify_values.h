// What ranks hold in verify mode: small integers drawn from (rank, salt, index). Every sum of them
// is exact in every element type, whatever the order of the additions (bfloat16 holds integers up
// to 256), and no rank, call or part of a buffer looks like another.
//
// Values come from one table of random numbers, in rows that start at a drawn offset: that is as
// fast as memory, but only row by row. Units: elements. Bound: 2^23 ranks. Threading: free
// functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "collectives/schedule.h"

namespace ghostrank {

using Value = std::int16_t;

inline constexpr std::uint64_t kRowElements = 1024;
using ValueRow = std::array<Value, kRowElements>;

inline constexpr Value kLargestValue = 250;  // of a value and of a sum
inline constexpr Value kPoisonValue = 251;   // neither a value nor a sum

// Each function writes out[0 .. count) for the elements [index, index + count), which must lie in
// one row: all have the same index / kRowElements.

// The data of `rank` of `size` in a collective without a reduction. All ranks' values sum to at
// most kLargestValue.
void own_values(Rank rank, int size, std::uint64_t salt, std::uint64_t index, std::uint64_t count,
                Value* out);

// The sum of all ranks' contributions.
void sum_values(std::uint64_t salt, std::uint64_t index, std::uint64_t count, Value* out);

// A rank's contribution to a reduction: its own values, or for the last rank what is missing from
// the sum. So a sum can be checked without drawing the values of every rank. No partial sum is
// below -kLargestValue.
void contributed_values(Rank rank, int size, std::uint64_t salt, std::uint64_t index,
                        std::uint64_t count, Value* out);

// Visits [first, first + count) row by row: visit(index, count).
template <typename Visit>
void for_each_row(std::uint64_t first, std::uint64_t count, Visit visit) {
  for (const std::uint64_t end = first + count; first < end;) {
    const std::uint64_t n = std::min(end - first, kRowElements - first % kRowElements);
    visit(first, n);
    first += n;
  }
}

}  // namespace ghostrank
