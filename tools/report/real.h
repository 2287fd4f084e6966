// Counts as the reals that humane.h takes.
#pragma once

#include <cstdint>

namespace ghostrank {

inline double real(std::uint64_t n) { return static_cast<double>(n); }

}  // namespace ghostrank
