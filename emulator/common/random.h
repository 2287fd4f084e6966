// Random numbers that are a pure function of the names given: the same on every fabric, on every
// host and with any number of threads.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace ghostrank {

// SplitMix64's step.
inline std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Maps 64 random bits to a number in (0, 1].
inline double to_unit(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

// A sequence of draws; `names` seed it.
class RandomBits {
 public:
  RandomBits(std::initializer_list<std::uint64_t> names) {
    for (const std::uint64_t name : names) state_ = mix_bits(state_ ^ name);
  }
  std::uint64_t next() { return state_ = mix_bits(state_); }
  double unit() { return to_unit(next()); }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace ghostrank
