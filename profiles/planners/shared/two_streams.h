// The first streams of most planners' programs.
#pragma once

#include <cstddef>

namespace ghostrank {

inline constexpr std::size_t kCompute = 0, kComm = 1;

}  // namespace ghostrank
