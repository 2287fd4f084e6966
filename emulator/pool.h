// Values at small indices that stay theirs until they are taken out; places are used anew, the last
// one left first.
//
// Bound: 2^32 - 1 values; memory grows to the most that were in at one time and is kept.
// Threading: one owner.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ghostrank {

inline constexpr std::uint32_t kNil = ~0u;  // no index

template <typename T>
class Pool {
 public:
  std::uint32_t put(T value) {
    if (free_.empty()) {
      places_.push_back(std::move(value));
      return static_cast<std::uint32_t>(places_.size() - 1);
    }
    const std::uint32_t i = free_.back();
    free_.pop_back();
    places_[i] = std::move(value);
    return i;
  }

  T take(std::uint32_t i) {
    free_.push_back(i);
    return std::move(places_[i]);
  }

  T& operator[](std::uint32_t i) { return places_[i]; }

 private:
  std::vector<T> places_;
  std::vector<std::uint32_t> free_;
};

}  // namespace ghostrank
