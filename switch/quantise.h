// Floats as integers that a switch can add: the numbers of a block share one exponent, the largest
// of all workers.
//
//   q = round(x * scale),  y = sum of all q / scale,  scale = 2^(31 - exponent) / the power of two
//                                                     that is at least the number of workers
//
// The sum of a block cannot overflow (with 129 workers or more the power of two exceeds their
// number). Before it is rounded to the type of the result, it is off by at most error_bound() from
// exact arithmetic. Numbers whose last bit is worth 1 / scale or more are summed exactly: of up to
// 128 workers the largest of a block are.
//
// As published, scale = (2^31 - 1) / (workers * 2^exponent), in floats, which round every product
// to 24 bits. A power of two rounds once, in floats too, and is at most half as fine.
//
// NaN counts as 0. Infinities and numbers beyond 2^127 count as the largest number below 2^127. A
// block with only numbers below 2^-96 is quantised with the exponent -96.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ghostrank::switchml {

inline constexpr int kLeastExponent = -96, kMostExponent = 127;

// The least e for which 2^e exceeds every number's magnitude, clamped to the limits above.
// `floats`, here and below: the bytes of floats.
std::int8_t exponent_of(std::span<const std::byte> floats);
// `whole` has as many elements as `floats`. A number of magnitude 2^exponent or more counts as the
// largest one below.
void quantise(std::span<const std::byte> floats, int exponent, int workers, std::int32_t* whole);
// `sums`: an int32 each, in the order of this machine, at least as many as `numbers`.
void restore(std::span<const std::byte> sums, int exponent, int workers, std::span<float> numbers);

double error_bound(int exponent, int workers);

}  // namespace ghostrank::switchml
