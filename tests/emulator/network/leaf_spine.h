// Leaves and spines between NICs of 100 Gb/s, for tests of links that messages share.
#pragma once

#include <cstdint>

#include "tests/emulator/support.h"

namespace ghostrank::testing {

inline constexpr double kNicRate = 100e9;         // bits per second
inline constexpr std::uint64_t kCount = 250'000;  // elements of a message, as of append_sends
inline constexpr double kLatency = 6e-6;          // seconds
inline constexpr double kSerial = kCount * 4 * 8 / kNicRate;

inline TopologySpec leaf_spine(int leaves, int spines, double oversubscription = 1) {
  TopologySpec spec;
  spec.kind = TopologySpec::Kind::leaf_spine;
  spec.leaves = leaves;
  spec.spines = spines;
  spec.oversubscription = oversubscription;
  return spec;
}

inline double seconds_of(const Result& result) { return result.iterations.at(0).seconds; }

}  // namespace ghostrank::testing
