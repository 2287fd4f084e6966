// Properties that make each compression method what it is: means of random rounding, majority
// votes, projections, hand-worked payloads, and what odd tensors become.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/compress/power_sgd.h"
#include "collectives/compress/sparsify/fits.h"
#include "collectives/compressor.h"
#include "collectives/gradients/gradient_law.h"
#include "tests/method_named.h"

namespace ghostrank {
namespace {

using Floats = std::vector<float>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Floats round_trip(std::string_view name, const Floats& tensor, CompressionOptions options = {}) {
  const std::vector<Floats> one{tensor};
  return exchanged(method_named(name), one, {{options}});
}

Floats drawn(std::size_t elements, std::uint64_t seed) {
  Floats tensor(elements);
  GradientLaw{}.draw(seed, tensor);
  return tensor;
}

// The methods of GRACE and of its rivals, by name.
TEST(Methods, AreThere) {
  for (const char* name :
       {"fp16",          "randomk",  "topk",       "threshold", "dgc",       "adaq",
        "qsgd",          "terngrad", "signsgd",    "signum",    "efsignsgd", "onebit",
        "natural",       "powersgd", "inceptionn", "sketch",    "8bit",      "redsync",
        "gaussian_ksgd", "sidco-e",  "sidco-p",    "sidco-gp",  "bf16",      "dithering"})
    EXPECT_TRUE(std::any_of(compressors().begin(), compressors().end(), [&](const Compressor& m) {
      return m.name == name;
    })) << name;
}

// 10,000 draws: the mean lies within 6 standard errors, of a deviation of at most half a unit.
TEST(RandomRounding, HasTheRightMean) {
  const Floats tensor{0.3f, -0.7f, 0.01f, 1, -0.001f, 0, 0.45f, -0.2f};
  constexpr int kDraws = 10'000;
  for (const char* name :
       {"qsgd", "terngrad", "natural", "dithering", "dithering natural", "dithering l2"}) {
    SCOPED_TRACE(name);
    CompressionOptions options;
    options.quantum = 4;
    options.natural = name == std::string_view("dithering natural");
    options.l2 = name == std::string_view("dithering l2");
    const std::string_view of = std::string_view(name).substr(0, std::string_view(name).find(' '));
    std::vector<double> sum(tensor.size());
    for (int d = 0; d < kDraws; ++d) {
      options.seed = static_cast<std::uint64_t>(d);
      const Floats back = round_trip(of, tensor, options);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(back[i]);
    }
    const double unit = method_named(of).error(tensor, options);
    ASSERT_LE(unit, 1.001);  // the largest magnitude is 1
    for (std::size_t i = 0; i < sum.size(); ++i)
      EXPECT_NEAR(sum[i] / kDraws, static_cast<double>(tensor[i]), 6 * unit / 2 / 100) << i;
  }
}

TEST(SignSgd, IsAVoteOfRanks) {
  const std::vector<Floats> ranks{{1, -1, -2, 0}, {3, -1, 5, 0}, {-9, -1, -1, -1}};
  const std::vector<CompressionOptions> options(3);
  EXPECT_EQ(exchanged(method_named("signsgd"), ranks, options), (Floats{1, -1, -1, 1}));
}

TEST(OneBit, SendsTheMeansOfBothSigns) {
  EXPECT_EQ(round_trip("onebit", {1, -2, 3, -4, 0}),
            (Floats{4.0f / 3, -3, 4.0f / 3, -3, 4.0f / 3}));
}

TEST(Natural, KeepsPowersOfTwo) {
  const Floats powers{1, -2, 0.125f, 0x1p-100f, -0x1p18f, 0};
  EXPECT_EQ(round_trip("natural", powers), powers);
  EXPECT_EQ(round_trip("natural", {0x1p-120f, 0x1p30f}), (Floats{0, 0x1p18f}));
}

TEST(Sketch, GivesEachQuantileItsMean) {
  CompressionOptions options;
  options.quantiles = 2;
  EXPECT_EQ(round_trip("sketch", {4, -1, 3, -3}, options), (Floats{3.5f, -2, 3.5f, -2}));
}

TEST(PowerSgd, IsExactForMatricesOfItsRank) {
  Floats tensor(12 * 7);
  for (std::size_t i = 0; i < tensor.size(); ++i)
    tensor[i] =
        static_cast<float>(static_cast<double>(i / 7 + 1) * (static_cast<double>(i % 7) - 2.5));
  CompressionOptions options;
  options.rows = 12;
  const Floats back = round_trip("powersgd", tensor, options);
  for (std::size_t i = 0; i < tensor.size(); ++i) EXPECT_NEAR(back[i], tensor[i], 1e-3f) << i;
  options.rows = tensor.size();  // a vector is sent as it is
  EXPECT_EQ(round_trip("powersgd", tensor, options), tensor);
}

TEST(Threshold, SendsWhatExceedsIt) {
  CompressionOptions options;
  options.threshold = 0.5;
  EXPECT_EQ(round_trip("threshold", {0.5f, -0.6f, 0.4f, 7}, options), (Floats{0, -0.6f, 0, 7}));
  EXPECT_EQ(payload_of(method_named("threshold"), Floats{0.1f, 0.2f}, options).size(), 0u);
}

TEST(Inceptionn, SendsBytesByExponents) {
  // 1.5: four bytes; 0.25: two; 2^-7: one; 2^-20: none; and a byte of classes for four elements.
  const Floats tensor{1.5f, -0.25f, 0x1p-7f, 0x1p-20f};
  EXPECT_EQ(payload_of(method_named("inceptionn"), tensor, {}).size(), 1u + 4 + 2 + 1);
  EXPECT_EQ(round_trip("inceptionn", tensor), (Floats{1.5f, -0.25f, 0x1p-7f, 0}));
}

// Worked by hand: levels 4, -2 and 1 at indices 1, 4 and 5, without random rounding. Distance, sign
// and level of each: 0100 0 01100, 0101 1 0100, 1 0 1.
TEST(Dithering, SendsTheDistancesSignsAndLevelsOfElementsInEliasCodes) {
  const Floats tensor{0, 1, 0, 0, -0.5f, 0.25f};
  CompressionOptions options;
  options.quantum = 4;
  const std::vector<std::byte> payload = payload_of(method_named("dithering"), tensor, options);
  ASSERT_EQ(payload.size(), 12u);
  std::uint32_t code, bits;
  float scale;
  std::memcpy(&code, payload.data(), 4);
  std::memcpy(&bits, payload.data() + 4, 4);
  std::memcpy(&scale, payload.data() + 8, 4);
  EXPECT_EQ(code, 0b0100001100'010110100'101'0000000000u);
  EXPECT_EQ(bits, 22u);
  EXPECT_EQ(scale, 1.0f);
  EXPECT_EQ(round_trip("dithering", tensor, options), tensor);
  options.quantum = 3;  // natural: 1, 2, 4
  options.natural = true;
  EXPECT_EQ(payload_of(method_named("dithering"), tensor, options), payload);
  EXPECT_EQ(round_trip("dithering", tensor, options), tensor);
}

// All levels are 1. If a share d of the elements has a level, an element takes on average
// d (1 + 1 + E[bits of the distance]) bits: sign, level, distance. Zeros alone take 8 bytes.
TEST(Dithering, IsAsLongAsTheDataDecide) {
  CompressionOptions options;
  options.quantum = 1;
  Floats tensor(100'000, 0.0625f);
  tensor.front() = 1;  // the others have a level once in 16 times
  const auto bytes =
      static_cast<double>(payload_of(method_named("dithering"), tensor, options).size());
  double bits_of_distance = 0;
  for (std::uint32_t d = 1; d < 1000; ++d) {
    const int length = std::bit_width(d);
    const int code = length - 1 + 2 * std::bit_width(static_cast<unsigned>(length)) - 1;
    bits_of_distance += code * std::pow(15.0 / 16, d - 1) / 16;
  }
  const double expected = 100'000 / 16.0 * (2 + bits_of_distance) / 8;
  EXPECT_NEAR(bytes, expected, 0.03 * expected);
  EXPECT_EQ(payload_of(method_named("dithering"), Floats(1000), options).size(), 8u);
  tensor.back() = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(round_trip("dithering", tensor, options).front()));
}

// A payload of 512 MiB and more has 2^32 bits and more, and says how many modulo 2^32. This one
// says 0 and means 2^32: three elements, then what is no code.
TEST(Dithering, NumberOfBitsMayExceed32Bits) {
  const Floats tensor{0.5f, -1, 1};
  CompressionOptions options;
  const std::vector<std::byte> short_one = payload_of(method_named("dithering"), tensor, options);
  const std::size_t code = short_one.size() - 8, words = std::size_t{1} << 29;
  std::vector<std::byte> payload(words + 8);
  std::memcpy(payload.data(), short_one.data(), code);
  std::memcpy(payload.data() + words + 4, short_one.data() + code + 4, 4);  // the scale
  Floats read(3), expected(3);
  method_named("dithering").decompress(payload, options, read);
  method_named("dithering").decompress(short_one, options, expected);
  EXPECT_EQ(read, expected);
  EXPECT_EQ(read[1], -1);
}

// GRACE's formulas for a tensor of 1000 elements.
TEST(Payloads, HaveTheBytesOfGrace) {
  const auto bytes = [](std::string_view name, auto change) {
    CompressionOptions options;
    change(options);
    return payload_bytes(method_named(name), 1000, options);
  };
  const auto as_is = [](CompressionOptions&) {};
  EXPECT_EQ(bytes("fp16", as_is), 2000u);
  EXPECT_EQ(bytes("randomk", as_is), 40u);
  EXPECT_EQ(bytes("topk", as_is), 80u);
  for (const char* name : {"signsgd", "signum", "natural"}) EXPECT_EQ(bytes(name, as_is), 1000u);
  for (const char* name : {"terngrad", "8bit", "efsignsgd", "qsgd"})
    EXPECT_EQ(bytes(name, as_is), 1004u);
  EXPECT_EQ(bytes("onebit", as_is), 1008u);
  EXPECT_EQ(bytes("qsgd", [](auto& o) { o.quantum = 128; }), 2004u);
  EXPECT_EQ(bytes("sketch", as_is), 1256u);
  EXPECT_EQ(bytes("sketch", [](auto& o) { o.quantiles = 256; }), 3024u);
  EXPECT_EQ(bytes("powersgd", [](auto& o) { o.rows = 50, o.rank = 2; }), 4u * 2 * 50);
  EXPECT_EQ(bytes("powersgd", [](auto& o) { o.rows = 50, o.rank = 2, o.round = 1; }), 4u * 2 * 20);
}

// Zeros stay zeros (or become votes). NaN and infinity cause no bad access. Methods with a scale
// turn every element of a tensor with NaN or infinity into NaN or infinity, so that it shows.
TEST(OddTensors, AreTakenByEveryMethod) {
  for (const Compressor& m : compressors()) {
    SCOPED_TRACE(m.name);
    for (const float x : round_trip(m.name, Floats(100)))
      EXPECT_EQ(std::abs(x), m.majority ? 1.0f : 0.0f);
    const Floats one{-3};
    ASSERT_EQ(round_trip(m.name, one).size(), 1u);
    if (!m.majority) {
      EXPECT_NEAR(round_trip(m.name, one)[0], -3, m.error(one, {}) * (1 + 1e-6));
    }
    for (const Floats& odd :
         {Floats{NAN, 1, 2, 3}, Floats{kInfinity, -kInfinity, 1, 0}, Floats{NAN, NAN},
          Floats{-kInfinity},
          Floats{std::numeric_limits<float>::max(), 1, -std::numeric_limits<float>::max()}})
      EXPECT_EQ(round_trip(m.name, odd).size(), odd.size());
  }
  for (const char* name : {"qsgd", "terngrad", "8bit", "dithering", "efsignsgd"})
    for (const float odd : {kInfinity, NAN})
      for (const float x : round_trip(name, {odd, 1, 0, -2}))
        EXPECT_FALSE(std::isfinite(x)) << name << ' ' << odd;
  EXPECT_TRUE(std::isnan(round_trip("dgc", {NAN, 1, 2, 3})[0]));
}

TEST(Fits, AreInversesOfTheirFunctions) {
  EXPECT_NEAR(fits::normal_quantile(0.975), 1.959963984540054, 1e-9);
  EXPECT_NEAR(fits::normal_quantile(0.001), -3.090232306167814, 1e-9);
  EXPECT_NEAR(fits::gamma_share(1, 2), 1 - std::exp(-2.0), 1e-12);
  EXPECT_NEAR(fits::gamma_share(0.5, 0.5), std::erf(std::sqrt(0.5)), 1e-12);
  for (const double a : {0.2, 1.0, 3.5, 40.0})
    for (const double p : {0.01, 0.5, 0.99, 0.9999})
      EXPECT_NEAR(fits::gamma_share(a, fits::gamma_quantile(a, p)), p, 1e-9) << a << " " << p;
}

// A bucket of a matrix of rank 1, a vector, and a matrix too small to be worth it: the first is
// approximated exactly, the others are sent as they are.
TEST(PowerSgd, OfPartsCompressesTheMatricesThatAreWorthIt) {
  const std::vector<TensorShape> parts{{20, 30}, {50, 1}, {3, 3}};
  CompressionOptions options;
  options.parts = parts;
  const std::uint64_t sizes[] = {50 + 9, 20, 30, 0};
  for (options.round = 0; options.round < 4; ++options.round)
    EXPECT_EQ(kPowerSgdOfParts.size(659, options), sizes[options.round]);
  options.round = 0;
  Floats tensor = drawn(659, 5);
  for (std::size_t i = 0; i < 600; ++i)
    tensor[i] = static_cast<float>(i / 30 + 1) * (static_cast<float>(i % 30) - 11.5f);
  const Floats back = exchanged(kPowerSgdOfParts, std::vector<Floats>{tensor}, {{options}});
  for (std::size_t i = 0; i < 659; ++i) EXPECT_NEAR(back[i], tensor[i], i < 600 ? 1e-3 : 0) << i;
}

}  // namespace
}  // namespace ghostrank
