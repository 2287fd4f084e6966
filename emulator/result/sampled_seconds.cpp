#include "emulator/result/sampled_seconds.h"

#include <algorithm>
#include <map>

#include "collectives/common/dice.h"
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

std::vector<std::vector<double>> SampledSeconds::by_kind() const {
  std::map<std::uint32_t, std::vector<double>> kinds;
  for (std::size_t i = 0; i < values_.size(); ++i) kinds[kinds_[i]].push_back(values_[i]);
  std::vector<std::vector<double>> all;
  for (auto& [kind, values] : kinds) {
    std::sort(values.begin(), values.end());
    all.push_back(std::move(values));
  }
  return all;
}

std::pair<double, double> SampledSeconds::median_interval() const {
  if (values_.empty()) return {0, 0};
  const std::vector<std::vector<double>> kinds = by_kind();
  constexpr int kDraws = 200, kLeftOut = kDraws / 40;  // one in 40 on either side
  checking::Dice dice(values_.size());
  std::vector<double> medians, drawn;
  for (int draw = 0; draw < kDraws; ++draw) {
    drawn.clear();
    for (const std::vector<double>& calls : kinds) {
      const bool alike = calls.front() == calls.back();  // needs no dice
      for (const double call : calls)
        drawn.push_back(alike ? call : calls[dice.below(calls.size())]);
    }
    medians.push_back(median(drawn));
  }
  std::sort(medians.begin(), medians.end());
  return {medians[kLeftOut], medians[kDraws - 1 - kLeftOut]};
}

double SampledSeconds::spread_at_median() const {
  const double middle = median({values_.begin(), values_.end()});
  double widest = 0;
  for (const std::vector<double>& calls : by_kind()) {
    if (middle < calls.front() || middle > calls.back()) continue;
    const std::size_t quarter = calls.size() / 4;
    widest = std::max(widest, (calls[calls.size() - 1 - quarter] - calls[quarter]) / 2);
  }
  return widest;
}

}  // namespace ghostrank
