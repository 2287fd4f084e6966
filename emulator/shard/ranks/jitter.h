// The random variation of compute delays (`run.jitter`).
#pragma once

#include <cstdint>

namespace ghostrank {

// Returns the factor of one compute delay: lognormal with mean 1 and standard deviation `deviation`
// (0 or more), always above 0. It depends on the arguments alone, so it is the same on every fabric
// and host layout. `position`: of the op in its stream, below 2^24; `iteration`: below 2^32.
double jitter_factor(std::uint64_t seed, std::uint64_t rank, std::uint64_t iteration,
                     std::uint8_t stream, std::uint64_t position, double deviation);

// No factor of this deviation is less, whatever the other arguments.
double least_jitter_factor(double deviation);

}  // namespace ghostrank
