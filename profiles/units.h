// Units shared by profiles and the engine. Modelled time is integer picoseconds (a byte at 400 Gb/s
// is 20 of them); rates are bits per second as links are sold, decimal; sizes are bytes.
#pragma once

#include <cstdint>

namespace ghostrank {

using Picoseconds = std::int64_t;
inline constexpr Picoseconds kPicosPerNano = 1'000;
inline constexpr Picoseconds kPicosPerMicro = 1'000'000;
inline constexpr Picoseconds kPicosPerMilli = 1'000'000'000;
inline constexpr Picoseconds kPicosPerSecond = 1'000'000'000'000;

// A run's clock ends here, after 26 days, so that sums of times fit. A time that is longer becomes
// kTooLong.
inline constexpr Picoseconds kClockEnd = Picoseconds{1} << 61;
inline constexpr Picoseconds kTooLong = 2 * kClockEnd;

// The picoseconds nearest to `t`, at most kTooLong.
inline Picoseconds picoseconds(double t) {
  return t < static_cast<double>(kTooLong) ? static_cast<Picoseconds>(t + 0.5) : kTooLong;
}

inline double seconds(Picoseconds t) { return static_cast<double>(t) * 1e-12; }

}  // namespace ghostrank
