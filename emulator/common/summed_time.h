// Sums of emulated times that may be longer than the 106 days that Picoseconds hold.
// Threading: plain values.
#pragma once

#include <cstdint>

#include "profiles/units.h"

namespace ghostrank {

// A sum of times. It is exact, so the order in which they are added changes nothing.
struct SummedTime {
  std::int64_t whole_seconds = 0;
  Picoseconds rest = 0;  // less than a second

  static SummedTime of(Picoseconds time) {
    SummedTime sum;
    sum.add(time);
    return sum;
  }
  void add(Picoseconds time) {
    rest += time;
    whole_seconds += rest / kPicosPerSecond;
    rest %= kPicosPerSecond;
  }
  void merge(const SummedTime& other) {
    whole_seconds += other.whole_seconds;
    add(other.rest);
  }
  double seconds() const {
    return static_cast<double>(whole_seconds) +
           static_cast<double>(rest) / static_cast<double>(kPicosPerSecond);
  }
};

}  // namespace ghostrank
