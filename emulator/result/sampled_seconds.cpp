#include "emulator/result/sampled_seconds.h"

namespace ghostrank {
namespace {

// 32 coin tosses for a number, after splitmix64.
std::uint32_t coins(std::uint64_t number) {
  std::uint64_t x = (number + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<std::uint32_t>(x ^ (x >> 31));
}

}  // namespace

void SampledSeconds::add(double seconds, std::uint64_t call) {
  keep(static_cast<float>(seconds), coins(call));
}

void SampledSeconds::keep(float seconds, std::uint32_t tosses) {
  if (!keeps(tosses)) return;
  values_.push_back(seconds);
  tosses_.push_back(tosses);
  while (values_.size() > kMost) halve();
}

void SampledSeconds::merge(const SampledSeconds& other) {
  while (halvings_ < other.halvings_) halve();
  for (std::size_t i = 0; i < other.values_.size(); ++i) keep(other.values_[i], other.tosses_[i]);
}

void SampledSeconds::halve() {
  ++halvings_;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (!keeps(tosses_[i])) continue;
    values_[kept] = values_[i];
    tosses_[kept++] = tosses_[i];
  }
  values_.resize(kept);
  tosses_.resize(kept);
}

}  // namespace ghostrank
