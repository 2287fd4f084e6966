#include "switch/compiled/lanes.h"

#include <bit>
#include <cstring>

#include "switch/kernel.h"

namespace ghostrank::switchml {
namespace {

// Elements are processed in runs of this length, so no remainder loop is needed.
constexpr int kRun = 32;

inline std::uint32_t swapped(std::uint32_t v) {
  return std::endian::native == std::endian::big ? v : __builtin_bswap32(v);
}

}  // namespace

GHOSTRANK_KERNEL void load_lanes(std::int32_t* values, const std::byte* wire, int n) {
  for (int i = 0; i < n; i += kRun) {
    std::uint32_t run[kRun];
    std::memcpy(run, wire + 4 * i, sizeof run);
    for (int k = 0; k < kRun; ++k) values[i + k] = static_cast<std::int32_t>(swapped(run[k]));
  }
}

GHOSTRANK_KERNEL void add_lanes(std::int32_t* values, const std::byte* wire, int n) {
  for (int i = 0; i < n; i += kRun) {
    std::uint32_t run[kRun];
    std::memcpy(run, wire + 4 * i, sizeof run);
    for (int k = 0; k < kRun; ++k)
      values[i + k] =
          static_cast<std::int32_t>(static_cast<std::uint32_t>(values[i + k]) + swapped(run[k]));
  }
}

GHOSTRANK_KERNEL void store_lanes(std::byte* wire, const std::int32_t* values, int n) {
  for (int i = 0; i < n; i += kRun) {
    std::uint32_t run[kRun];
    for (int k = 0; k < kRun; ++k) run[k] = swapped(static_cast<std::uint32_t>(values[i + k]));
    std::memcpy(wire + 4 * i, run, sizeof run);
  }
}

GHOSTRANK_KERNEL void turn_lanes(std::byte* to, const std::byte* from, int n) {
  for (int i = 0; i < n; i += kRun) {
    std::uint32_t run[kRun];
    std::memcpy(run, from + 4 * i, sizeof run);
    for (int k = 0; k < kRun; ++k) run[k] = swapped(run[k]);
    std::memcpy(to + 4 * i, run, sizeof run);
  }
}

}  // namespace ghostrank::switchml
