#include "emulator/estimate/resource_classes.h"

#include <algorithm>

namespace ghostrank {
namespace {

constexpr std::uint64_t kAlike = 256;  // times that differ by less than this part are alike

std::uint64_t mixed(std::uint64_t hash, std::uint64_t more) {
  hash = (hash ^ more) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 29;
}

}  // namespace

void ResourceClasses::add(const Busy& busy) {
  if (times_.try_emplace(&busy).second) all_.push_back(&busy);
}

void ResourceClasses::make() {
  std::unordered_map<std::uint32_t, std::uint64_t> uses;  // by resource
  for (std::size_t number = 0; number < all_.size(); ++number) {
    Picoseconds most = 1;
    for (const auto& one : *all_[number]) most = std::max(most, one.time);
    for (const auto& one : *all_[number]) {
      const double share = static_cast<double>(one.time) / static_cast<double>(most);
      const auto part = static_cast<std::uint64_t>(static_cast<double>(kAlike) * share + 0.5);
      std::uint64_t& hash = uses[one.resource];
      hash = mixed(mixed(hash, number + 1), part);
    }
  }
  for (const Busy* busy : all_)
    for (const auto& one : *busy) {
      const auto next = static_cast<std::uint32_t>(classes_.size());
      const std::uint32_t number = classes_.try_emplace(uses[one.resource], next).first->second;
      Picoseconds& time = times_[busy][number];
      time = std::max(time, one.time);
    }
}

}  // namespace ghostrank
