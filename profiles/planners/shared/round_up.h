// Sizes that planners pad. Threading: pure function.
#pragma once

#include <cstdint>

namespace ghostrank {

inline std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace ghostrank
