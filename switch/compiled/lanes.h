// Sums of vectors of big-endian int32; additions wrap around as registers do. The program chooses
// the kernel at its start by what the processor supports.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ghostrank::switchml {

// values[i] = element i of `wire` in host order, for 0 <= i < n; n is a multiple of 32.
void load_lanes(std::int32_t* values, const std::byte* wire, int n);
// values[i] += element i of `wire`; n as above.
void add_lanes(std::int32_t* values, const std::byte* wire, int n);
// The reverse of load_lanes.
void store_lanes(std::byte* wire, const std::int32_t* values, int n);
// Reverses the bytes of n elements (on a little-endian host): either of them on bytes; n as above.
void turn_lanes(std::byte* to, const std::byte* from, int n);

}  // namespace ghostrank::switchml
