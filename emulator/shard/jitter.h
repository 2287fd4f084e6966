// By how much a compute delay varies: `run.jitter`.
//
// Threading: a pure function.
#pragma once

#include <cstdint>

namespace ghostrank {

// What multiplies a compute delay: lognormal with mean 1 and standard deviation `deviation` (0 or
// more), always above 0. The same on every fabric and every host layout: drawn from the other
// arguments alone. `position` is that of the op in its stream, below 2^24; `iteration` below 2^32.
double jitter_factor(std::uint64_t seed, std::uint64_t rank, std::uint64_t iteration,
                     std::uint8_t stream, std::uint64_t position, double deviation);

}  // namespace ghostrank
