// What ranks hold in verify mode: small integers drawn from (rank, salt, index), so that every sum
// of them, whatever the order of the additions, is exact in every element type (bfloat16 holds
// integers up to 256), and no rank, call or place in a buffer looks like another.
//
// They are taken from one table of random numbers, in rows that begin at a place drawn for each: as
// fast as memory, which is why they come by the row.
// Units: elements. Bound: 2^23 ranks. Threading: free functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "collectives/schedule.h"

namespace ghostrank {

using Value = std::int16_t;

inline constexpr std::uint64_t kRowElements = 1024;
using ValueRow = std::array<Value, kRowElements>;

inline constexpr Value kLargestValue = 250;  // of a sum, too
inline constexpr Value kPoisonValue = 251;   // no value and no sum

// Each writes out[0 .. count) for the elements [index, index + count), which lie within one row:
// all have the same index / kRowElements.

// What `rank` of `size` has where nothing is added up. All ranks have at most kLargestValue
// together.
void own_values(Rank rank, int size, std::uint64_t salt, std::uint64_t index, std::uint64_t count,
                Value* out);

// What the contributions of all ranks add up to.
void sum_values(std::uint64_t salt, std::uint64_t index, std::uint64_t count, Value* out);

// What a rank adds: its own value; the last one what is missing to the sum. So nobody who compares
// a sum has to ask every rank. What some ranks have together is never below -kLargestValue.
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
