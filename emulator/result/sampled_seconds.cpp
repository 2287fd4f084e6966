#include "emulator/result/sampled_seconds.h"

#include <algorithm>

namespace ghostrank {
namespace {

// 64 coin tosses for a number, after splitmix64.
std::uint64_t coins(std::uint64_t number) {
  std::uint64_t x = (number + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

void SampledSeconds::add(double seconds) {
  const std::uint64_t tosses = coins(calls_++);
  const auto kept = [&] { return (tosses & ((std::uint64_t{1} << halvings_) - 1)) == 0; };
  if (values_.size() == kMost && kept()) halve();
  if (kept()) values_.push_back(static_cast<float>(seconds));
}

void SampledSeconds::merge(const SampledSeconds& other) {
  SampledSeconds theirs = other;
  while (halvings_ < theirs.halvings_) halve();
  while (theirs.halvings_ < halvings_) theirs.halve();
  while (values_.size() + theirs.values_.size() > kMost) halve(), theirs.halve();
  values_.insert(values_.end(), theirs.values_.begin(), theirs.values_.end());
  calls_ += theirs.calls_;
}

void SampledSeconds::halve() {
  std::uint64_t number = calls_;
  std::erase_if(values_, [&](float) { return (coins(~number++) & 1) == 0; });
  ++halvings_;
}

}  // namespace ghostrank
