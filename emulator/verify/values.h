// What ranks hold in verify mode: small integers drawn from (rank, salt, index). Every sum of them
// is exact in every element type, whatever the order of the additions (bfloat16 holds integers up
// to 256), and no rank, call or part of a buffer looks like another.
//
// Values come from one table of random numbers, in tiles that start at a drawn offset: that is as
// fast as memory, but only tile by tile. Units: elements. Bound: 2^23 ranks. Threading: free
// functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "collectives/schedule.h"

namespace ghostrank {

using Value = std::int16_t;

inline constexpr std::uint64_t kTileElements = 1024;
using ValueTile = std::array<Value, kTileElements>;

inline constexpr Value kLargestValue = 250;  // of a value and of a sum
inline constexpr Value kPoisonValue = 251;   // neither a value nor a sum

// Each function writes out[0 .. count) for the elements [index, index + count), which must lie in
// one tile: all have the same index / kTileElements.

// The data of `rank` of `size` in a collective without a reduction. All ranks' values sum to at
// most kLargestValue.
void own_values(GroupRank rank, int size, std::uint64_t salt, std::uint64_t index,
                std::uint64_t count, Value* out);

// The sum of all ranks' contributions.
void sum_values(std::uint64_t salt, std::uint64_t index, std::uint64_t count, Value* out);

// A rank's contribution to a reduction: its own values, or for the last rank the remainder to the
// sum. So a sum can be checked without drawing the values of every rank. No partial sum is
// below -kLargestValue.
void contributed_values(GroupRank rank, int size, std::uint64_t salt, std::uint64_t index,
                        std::uint64_t count, Value* out);

// Visits [first, first + count) tile by tile: visit(index, count).
template <typename Visit>
void for_each_tile(std::uint64_t first, std::uint64_t count, Visit visit) {
  for (const std::uint64_t end = first + count; first < end;) {
    const std::uint64_t n = std::min(end - first, kTileElements - first % kTileElements);
    visit(first, n);
    first += n;
  }
}

}  // namespace ghostrank
