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
    if (nodes_.size() < 2 * leaves_) nodes_.resize(2 * leaves_);
    for (std::size_t number = count; number < leaves_; ++number) put(number, kNone);
  }
  void put(std::size_t number, double level) {
    nodes_[leaves_ + number] = {order_of(level), number};
  }
  void build() {
    for (std::size_t at = leaves_; --at > 0;) {
      const Node &left = nodes_[2 * at], &right = nodes_[2 * at + 1];
      nodes_[at] = lower_of(left, right, right.level < left.level);
    }
  }

  double level() const { return std::bit_cast<double>(nodes_[1].level); }  // kNone: there is none
  std::size_t number() const { return nodes_[1].number; }                  // of level()
  // On its way up it reads nothing that it has just written, which would take longer than the rest.
  void change(std::size_t number, double level) {
    std::size_t at = leaves_ + number;
    Node lower{order_of(level), number};
    nodes_[at] = lower;
    for (; at > 1; at /= 2) {
      const Node& other = nodes_[at ^ 1];
      // Of equal ones the left: of those on the right of the other, any that is not lower.
      lower = lower_of(lower, other, other.level < lower.level + at % 2);
      nodes_[at / 2] = lower;
    }
  }

 private:
  struct Node {
    std::uint64_t level, number;
  };

  // Levels are not negative, so their bits have their order.
  static std::uint64_t order_of(double level) { return std::bit_cast<std::uint64_t>(level); }
  static Node lower_of(const Node& a, const Node& b, bool is_b) {
    const std::uint64_t mask = 0 - std::uint64_t{is_b};
    return {a.level ^ ((a.level ^ b.level) & mask), a.number ^ ((a.number ^ b.number) & mask)};
  }

  // In heap order: the lowest is at 1; the two below i are at 2 i and 2 i + 1.
  std::size_t leaves_ = 1;
  std::vector<Node> nodes_;
};

}  // namespace ghostrank
