// Random draws of a compression method: number i of a seed, the same on every machine and in any
// order, so that a loop over elements can be vectorised.
//
// Threading: pure functions.
#pragma once

#include <cstdint>

#include "collectives/common/dice.h"

namespace ghostrank {

// Uniform in [0, 1).
inline float unit_draw(std::uint64_t seed, std::uint64_t i) {
  return static_cast<float>(checking::mix(seed + (i + 1) * 0x9e3779b97f4a7c15ULL) >> 40) * 0x1p-24f;
}

}  // namespace ghostrank
