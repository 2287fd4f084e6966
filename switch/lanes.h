// Sums of vectors of int32 that travel big-endian; additions wrap as registers do. The kernel is
// chosen when the program starts, by what the processor can do.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ghostrank::switchml {

// values[i] = the i-th big-endian element of `wire`; 0 <= i < n, n a multiple of 32.
void load_lanes(std::int32_t* values, const std::byte* wire, int n);
// values[i] += likewise
void add_lanes(std::int32_t* values, const std::byte* wire, int n);
// The reverse of load_lanes.
void store_lanes(std::byte* wire, const std::int32_t* values, int n);

}  // namespace ghostrank::switchml
