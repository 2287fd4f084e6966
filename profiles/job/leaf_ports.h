// How many leaves NICs need where the job gives no number. Threading: pure function.
#pragma once

#include <cstdint>

namespace ghostrank {

inline constexpr int kPortsDown = 32;  // of a leaf: half of a 64-port switch

inline int ceiling(std::int64_t a, std::int64_t b) { return static_cast<int>((a + b - 1) / b); }

}  // namespace ghostrank
