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

inline double seconds(Picoseconds t) { return static_cast<double>(t) * 1e-12; }

}  // namespace ghostrank
