// Floats as whole numbers that a switch can add: a block's numbers share one exponent, the largest
// of all workers.
//
//   q = round(x * scale),  y = sum of all q / scale,  scale = (2^31 - 1) / (workers * 2^exponent)
//
// The sum of a block cannot overflow with up to 256 workers. It is off by at most error_bound() of
// what exact arithmetic gives, before it is rounded to the type of the result.
//
// Not numbers (NaN) count as 0. What is infinite, or beyond 2^127, counts as the largest number
// below that. Blocks whose numbers are all below 2^-96 are as coarse as that.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ghostrank::switchml {

inline constexpr int kLeastExponent = -96, kMostExponent = 127;

// 2^exponent is more than every number's magnitude.
std::int8_t exponent_of(std::span<const float> numbers);
// As large as `numbers`; no number is 2^exponent or more, or it counts as the largest below.
void quantise(std::span<const float> numbers, int exponent, int workers, std::int32_t* whole);
void restore(std::span<const std::int32_t> sums, int exponent, int workers, float* numbers);

double error_bound(int exponent, int workers);

}  // namespace ghostrank::switchml
