#include "emulator/shard/ranks/jitter.h"

#include <cmath>
#include <numbers>

#include "emulator/common/random.h"

namespace ghostrank {
namespace {

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
  std::uint64_t h = mix_bits(seed);
  h = mix_bits(h ^ rank);
  h = mix_bits(h ^ (iteration << 32 | position << 8 | stream));
  const double normal =
      farthest(to_unit(h)) * std::cos(2 * std::numbers::pi * to_unit(mix_bits(h)));
  return lognormal(normal, deviation);
}

double least_jitter_factor(double deviation) { return lognormal(-farthest(to_unit(0)), deviation); }

}  // namespace ghostrank
