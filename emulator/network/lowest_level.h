// The lowest of many levels, which change one at a time: a tree in which each entry is the lower
// of the two below it. No step takes a branch, because levels are unpredictable and a mispredicted
// branch costs more than the rest of a step. Of equal levels the one with the lowest number is
// first, so what is found depends on nothing but the levels.
//
// Threading: one owner.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ghostrank {

class LowestLevel {
 public:
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  // Makes room for levels 0 to count - 1. put() must set each of them, then build().
  void begin(std::size_t count) {
    leaves_ = std::bit_ceil(std::max<std::size_t>(count, 1));
    if (level_.size() < 2 * leaves_) {
      level_.resize(2 * leaves_);
      number_.resize(2 * leaves_);
    }
    for (std::size_t number = count; number < leaves_; ++number) put(number, kNone);
  }
  void put(std::size_t number, double level) {
    level_[leaves_ + number] = order_of(level);
    number_[leaves_ + number] = number;
  }
  void build() {
    for (std::size_t at = leaves_; --at > 0;) {
      const std::size_t lower = 2 * at + (level_[2 * at + 1] < level_[2 * at]);
      level_[at] = level_[lower];
      number_[at] = number_[lower];
    }
  }

  double level() const { return std::bit_cast<double>(level_[1]); }  // kNone: there is none
  std::size_t number() const { return number_[1]; }                  // of level()
  void change(std::size_t number, double level) {
    std::size_t at = leaves_ + number;
    level_[at] = order_of(level);
    for (; at > 1; at /= 2) {
      const std::size_t left = at & ~std::size_t{1};
      const std::size_t lower = left + (level_[left + 1] < level_[left]);
      level_[at / 2] = level_[lower];
      number_[at / 2] = number_[lower];
    }
  }

 private:
  // Levels are not negative, so their bits have their order.
  static std::uint64_t order_of(double level) { return std::bit_cast<std::uint64_t>(level); }

  // In heap order: the lowest is at 1; the two below i are at 2 i and 2 i + 1.
  std::size_t leaves_ = 1;
  std::vector<std::uint64_t> level_, number_;
};

}  // namespace ghostrank
