// A log-linear histogram of non-negative integers with 32 bins per power of two, so quantiles are
// within 3 %. Fixed size, 15 KiB. Threading: one owner; merge between segments.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace ghostrank {

class Histogram {
 public:
  void add(std::uint64_t value) {
    ++bins_[bin(value)];
    ++count_;
    max_ = std::max(max_, value);
  }
  void merge(const Histogram& other) {
    for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i] += other.bins_[i];
    count_ += other.count_;
    max_ = std::max(max_, other.max_);
  }
  std::uint64_t count() const { return count_; }
  std::uint64_t max() const { return max_; }
  // Lower edge of the bin that holds the q-quantile, 0 <= q <= 1.
  std::uint64_t quantile(double q) const {
    auto left = static_cast<std::uint64_t>(q * static_cast<double>(count_));
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      if (bins_[i] > left) return edge(i);
      left -= bins_[i];
    }
    return max_;
  }

 private:
  static constexpr unsigned kLinearBits = 5;
  static std::size_t bin(std::uint64_t v) {
    if (v < (1u << kLinearBits)) return v;
    const unsigned exponent = static_cast<unsigned>(std::bit_width(v)) - 1 - kLinearBits;
    return (static_cast<std::size_t>(exponent + 1) << kLinearBits) +
           ((v >> exponent) - (1u << kLinearBits));
  }
  static std::uint64_t edge(std::size_t i) {
    if (i < (1u << kLinearBits)) return i;
    const std::size_t exponent = (i >> kLinearBits) - 1;
    return ((i & ((1u << kLinearBits) - 1)) + (1u << kLinearBits)) << exponent;
  }

  // 64 bits, as count_ has: process 0 sums all processes' bins, and a run may take days.
  std::array<std::uint64_t, 60 << kLinearBits> bins_{};
  std::uint64_t count_ = 0, max_ = 0;
};

}  // namespace ghostrank
