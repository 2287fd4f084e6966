#include "switch/compiled/lanes.h"

#include <bit>
#include <cstring>

#include "switch/kernel.h"

namespace ghostrank::switchml {
namespace {

inline std::uint32_t swapped(std::uint32_t v) {
  return std::endian::native == std::endian::big ? v : __builtin_bswap32(v);
}

// Element i of big-endian bytes. Copied one by one, because GCC makes vectors of such loops, but
// not of those that copy a run first.
inline std::uint32_t element(const std::byte* wire, int i) {
  std::uint32_t v;
  std::memcpy(&v, wire + std::size_t{4} * static_cast<std::size_t>(i), sizeof v);
  return swapped(v);
}

inline void set_element(std::byte* wire, int i, std::uint32_t v) {
  v = swapped(v);
  std::memcpy(wire + std::size_t{4} * static_cast<std::size_t>(i), &v, sizeof v);
}

}  // namespace

GHOSTRANK_KERNEL void load_lanes(std::int32_t* __restrict values, const std::byte* __restrict wire,
                                 int n) {
  for (int i = 0; i < n; ++i) values[i] = static_cast<std::int32_t>(element(wire, i));
}

GHOSTRANK_KERNEL void add_lanes(std::int32_t* __restrict values, const std::byte* __restrict wire,
                                int n) {
  for (int i = 0; i < n; ++i)
    values[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(values[i]) + element(wire, i));
}

GHOSTRANK_KERNEL void store_lanes(std::byte* __restrict wire, const std::int32_t* __restrict values,
                                  int n) {
  for (int i = 0; i < n; ++i) set_element(wire, i, static_cast<std::uint32_t>(values[i]));
}

GHOSTRANK_KERNEL void turn_lanes(std::byte* __restrict to, const std::byte* __restrict from,
                                 int n) {
  for (int i = 0; i < n; ++i) {
    std::uint32_t v;
    std::memcpy(&v, from + std::size_t{4} * static_cast<std::size_t>(i), sizeof v);
    set_element(to, i, v);
  }
}

}  // namespace ghostrank::switchml
