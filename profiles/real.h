// Counts in arithmetic of real numbers. Threading: pure function.
#pragma once

#include <cstdint>

namespace ghostrank {

inline double real(std::uint64_t n) { return static_cast<double>(n); }

}  // namespace ghostrank
