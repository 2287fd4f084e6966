#include "emulator/shard/ranks/jitter.h"

#include <cmath>
#include <numbers>

namespace ghostrank {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Maps 64 random bits to a number in (0, 1].
double unit(std::uint64_t x) { return (static_cast<double>(x >> 11) + 0.5) * 0x1p-53; }

double farthest(double of_one) { return std::sqrt(-2 * std::log(of_one)); }

// A lognormal variable has mean 1 if its logarithm has mean -variance / 2; its standard deviation
// is then sqrt(exp(variance) - 1).
double lognormal(double normal, double deviation) {
  const double variance = std::log1p(deviation * deviation);
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

}  // namespace

double jitter_factor(std::uint64_t seed, std::uint64_t rank, std::uint64_t iteration,
                     std::uint8_t stream, std::uint64_t position, double deviation) {
  std::uint64_t h = mix(seed);
  h = mix(h ^ rank);
  h = mix(h ^ (iteration << 32 | position << 8 | stream));
  const double normal = farthest(unit(h)) * std::cos(2 * std::numbers::pi * unit(mix(h)));
  return lognormal(normal, deviation);
}

double least_jitter_factor(double deviation) { return lognormal(-farthest(unit(0)), deviation); }

}  // namespace ghostrank
