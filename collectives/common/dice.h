// Random numbers that are the same on every machine (splitmix64): for checkers, which must
// reproduce a defect from its seed, and for the content of tensors.
//
// Threading: one owner.
#pragma once

#include <cstdint>

namespace ghostrank::checking {

constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(mix(seed + 0x9e3779b97f4a7c15ULL)) {}

  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15ULL); }
  // 0 .. n-1; 0 for n = 0.
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }
  // Draws no number if the probability is 0, so that the other random choices stay the same.
  bool happens(double probability) {
    return probability > 0 && static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }

 private:
  std::uint64_t state_;
};

}  // namespace ghostrank::checking
