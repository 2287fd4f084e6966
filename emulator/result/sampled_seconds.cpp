#include "emulator/result/sampled_seconds.h"

#include <algorithm>

#include "collectives/dice.h"
#include "profiles/median.h"

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

void SampledSeconds::add(double seconds, std::uint64_t call, std::uint32_t kind) {
  keep(static_cast<float>(seconds), coins(call), kind);
}

void SampledSeconds::keep(float seconds, std::uint32_t tosses, std::uint32_t kind) {
  if (!keeps(tosses)) return;
  values_.push_back(seconds);
  tosses_.push_back(tosses);
  kinds_.push_back(kind);
  while (values_.size() > kMost) halve();
}

void SampledSeconds::merge(const SampledSeconds& other) {
  while (halvings_ < other.halvings_) halve();
  for (std::size_t i = 0; i < other.values_.size(); ++i)
    keep(other.values_[i], other.tosses_[i], other.kinds_[i]);
}

void SampledSeconds::halve() {
  ++halvings_;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (!keeps(tosses_[i])) continue;
    values_[kept] = values_[i];
    kinds_[kept] = kinds_[i];
    tosses_[kept++] = tosses_[i];
  }
  values_.resize(kept);
  tosses_.resize(kept);
  kinds_.resize(kept);
}

std::pair<double, double> SampledSeconds::median_interval() const {
  if (values_.empty()) return {0, 0};
  std::vector<std::pair<std::uint32_t, float>> calls;  // those of a kind side by side
  for (std::size_t i = 0; i < values_.size(); ++i) calls.emplace_back(kinds_[i], values_[i]);
  std::sort(calls.begin(), calls.end());
  std::vector<std::size_t> ends;  // of the kinds; a kind of calls all alike needs no dice
  for (std::size_t i = 1; i <= calls.size(); ++i)
    if (i == calls.size() || calls[i].first != calls[i - 1].first) ends.push_back(i);

  constexpr int kDraws = 200, kLeftOut = kDraws / 40;  // one in 40 on either side
  checking::Dice dice(calls.size());
  std::vector<double> medians, drawn(calls.size());
  for (int draw = 0; draw < kDraws; ++draw) {
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      const bool alike = calls[begin].second == calls[end - 1].second;
      for (std::size_t i = begin; i < end; ++i)
        drawn[i] = calls[alike ? i : begin + dice.below(end - begin)].second;
      begin = end;
    }
    medians.push_back(median(drawn));
  }
  std::sort(medians.begin(), medians.end());
  return {medians[kLeftOut], medians[kDraws - 1 - kLeftOut]};
}

}  // namespace ghostrank
