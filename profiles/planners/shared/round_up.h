// Sizes that planners pad or divide. Threading: pure functions.
#pragma once

#include <cstdint>

namespace ghostrank {

inline std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

inline std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return divide_up(value, multiple) * multiple;
}

}  // namespace ghostrank
