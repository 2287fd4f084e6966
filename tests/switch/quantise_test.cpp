// Floats added as integers: the error stays within the stated bound for all inputs.
#include "switch/quantise.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace ghostrank::switchml {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::span<const std::byte> bytes_of(const std::vector<float>& floats) {
  return std::as_bytes(std::span(floats));
}

// The sum of a block over all workers, as a switch computes it.
std::vector<float> summed(const std::vector<std::vector<float>>& blocks, int& exponent) {
  const auto workers = static_cast<int>(blocks.size());
  exponent = kLeastExponent;
  for (const auto& block : blocks) exponent = std::max<int>(exponent, exponent_of(bytes_of(block)));
  std::vector<std::uint32_t> sums(blocks[0].size());  // registers wrap
  std::vector<std::int32_t> whole(sums.size());
  for (const auto& block : blocks) {
    quantise(bytes_of(block), exponent, workers, whole.data());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<std::uint32_t>(whole[i]);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) whole[i] = static_cast<std::int32_t>(sums[i]);
  std::vector<float> result(sums.size());
  restore(std::as_bytes(std::span(whole)), exponent, workers, result);
  return result;
}

TEST(Quantise, ExponentIsAboveEveryMagnitude) {
  EXPECT_EQ(exponent_of(bytes_of({1.0f})), 1);
  EXPECT_EQ(exponent_of(bytes_of({0.99f, -0.5f})), 0);
  EXPECT_EQ(exponent_of(bytes_of({-4.0f, 3.0f})), 3);
  EXPECT_EQ(exponent_of(bytes_of({0.0f})), kLeastExponent);
  EXPECT_EQ(exponent_of(bytes_of({1e-40f})), kLeastExponent);
  EXPECT_EQ(exponent_of(bytes_of({kNan, 2.0f})), 2);
  EXPECT_EQ(exponent_of(bytes_of({kInfinity})), kMostExponent);
}

TEST(Quantise, SumsOfAnyNumbersOfUpTo256WorkersAreWithinTheBound) {
  std::mt19937 random(1);
  for (const int workers : {1, 2, 3, 7, 8, 32, 100, 256})
    for (int magnitude = -90; magnitude <= 126; magnitude += 12) {
      std::uniform_real_distribution<double> any(-1, 1);
      std::vector<std::vector<float>> blocks(workers, std::vector<float>(64));
      for (auto& block : blocks)
        for (float& x : block) x = static_cast<float>(std::ldexp(any(random), magnitude));
      // The largest numbers, all of one sign: no sum may overflow.
      for (auto& block : blocks) block[0] = std::ldexp(1.0f - 0x1p-24f, magnitude);
      for (auto& block : blocks) block[1] = -block[0];
      int exponent = 0;
      const std::vector<float> sums = summed(blocks, exponent);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        double exact = 0;
        for (const auto& block : blocks) exact += static_cast<double>(block[i]);
        if (std::abs(exact) > std::numeric_limits<float>::max()) continue;
        const double rounding = std::abs(exact) * 0x1p-23;
        EXPECT_LE(std::abs(static_cast<double>(sums[i]) - exact),
                  error_bound(exponent, workers) + rounding)
            << workers << " workers, 2^" << magnitude << ", element " << i;
      }
    }
}

TEST(Quantise, SumsOfTheLargestNumbersFitAndWasteNoMoreThanABit) {
  for (const int workers : {1, 2, 3, 32, 127, 128, 129, 255, 256, 257, 1024, 65536}) {
    std::vector<std::int32_t> whole(2);
    quantise(bytes_of({std::nextafter(1.0f, 0.0f), -kInfinity}), 0, workers, whole.data());
    EXPECT_EQ(whole[1], -whole[0]);
    const std::int64_t sum = std::int64_t{whole[0]} * workers;
    EXPECT_LE(sum, std::numeric_limits<std::int32_t>::max()) << workers;
    const bool full = std::has_single_bit(static_cast<unsigned>(workers)) && workers <= 128;
    EXPECT_GE(sum, std::int64_t{1} << (full && workers > 1 ? 30 : 29)) << workers;
  }
}

TEST(Quantise, NumbersThatNeedNoFinerStepAreSummedExactly) {
  std::mt19937 random(2);
  for (const int workers : {2, 3, 16, 33, 128})
    for (const int magnitude : {-60, 0, 100}) {
      // Of numbers in [2^(m-1), 2^m) the last bit is worth 2^(m-24), a step at most 2^(m-24).
      std::uniform_real_distribution<float> any(std::ldexp(0.5f, magnitude),
                                                std::ldexp(0.999f, magnitude));
      std::vector<std::vector<float>> blocks(workers, std::vector<float>(64));
      std::vector<double> exact(64);
      for (auto& block : blocks)
        for (std::size_t i = 0; i < block.size(); ++i)
          exact[i] += block[i] = any(random) * (random() % 2 == 0 ? 1 : -1);
      int exponent = 0;
      const std::vector<float> sums = summed(blocks, exponent);
      EXPECT_EQ(sums, std::vector<float>(exact.begin(), exact.end()))
          << workers << " workers, 2^" << magnitude;
    }
}

TEST(Quantise, WhatIsNoNumberCountsAsStated) {
  int exponent = 0;
  EXPECT_EQ(summed({{kNan, 0.0f}, {3.0f, 0.0f}}, exponent), (std::vector{3.0f, 0.0f}));
  const std::vector<float> large = summed({{kInfinity, -kInfinity}, {0.0f, 0.0f}}, exponent);
  EXPECT_NEAR(large[0] / 0x1p127f, 1, 1e-6);
  EXPECT_NEAR(large[1] / 0x1p127f, -1, 1e-6);
  EXPECT_EQ(summed({{0.0f}, {0.0f}}, exponent), std::vector{0.0f});
}

}  // namespace
}  // namespace ghostrank::switchml
