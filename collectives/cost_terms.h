// What the closed-form costs of several libraries are made of. Threading: pure functions.
#pragma once

#include <cstdint>
#include <numeric>

#include "collectives/schedule.h"

namespace ghostrank {

inline std::uint64_t ranks(const Collective& c) { return c.size; }
inline std::uint64_t bytes(const Collective& c) { return c.count * c.element_bytes; }
inline std::uint64_t all_counts(const Collective& c) {
  return std::accumulate(c.counts->begin(), c.counts->end(), std::uint64_t{0});
}

}  // namespace ghostrank
