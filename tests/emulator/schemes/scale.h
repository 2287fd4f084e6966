// Sizes and rates of the jobs that play schemes.
#pragma once

#include <cstdint>

namespace ghostrank::testing {

inline constexpr std::uint64_t kBlock = 256;      // elements that are zero together, or are not
inline constexpr double kSparseNicRate = 100e9;   // bits per second: where tensors are sparse
inline constexpr double kSwitchedNicRate = 10e9;  // where a switch sums

}  // namespace ghostrank::testing
