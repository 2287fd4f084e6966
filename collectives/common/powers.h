// Powers of two, for counts of ranks. Threading: pure functions.
#pragma once

#include <bit>

namespace ghostrank {

// n >= 1
inline int floor_log2(int n) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1;
}
inline int ceil_log2(int n) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));
}
inline bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

// Returns the largest power of two <= n; 0 if n is 0.
inline int power_of_two_below(int n) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
}
// Returns the smallest power of two >= n.
inline int power_of_two_above(int n) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n)));
}

}  // namespace ghostrank
