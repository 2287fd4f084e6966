// Compressors keep their claims, and the checker finds those that do not; conversion of floats to
// halves.
#include "collectives/compressor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/common/dice.h"
#include "collectives/compress/byteps.h"
#include "collectives/schemes/keyed/piece_compression.h"
#include "tests/method_named.h"

namespace ghostrank {
namespace {

TEST(Half, IsReadBackAsItWasWritten) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const float value = half.value();
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Half::from(value).value()));
    } else {
      EXPECT_EQ(Half::from(value).bits, half.bits) << bits;
    }
  }
}

TEST(Bf16, OfANanIsANan) {
  for (const std::uint32_t bits : {0x7fffffffu, 0xffffffffu, 0x7f800001u, 0xff80ffffu})
    EXPECT_TRUE(std::isnan(Bf16::from(std::bit_cast<float>(bits)).value())) << bits;
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Bf16::from(-inf).value(), -inf);
  EXPECT_EQ(Bf16::from(std::numeric_limits<float>::max()).value(), inf);
  EXPECT_EQ(Bf16::from(1 + 0x1.8p-8f).value(), 1 + 0x1p-7f);
  EXPECT_EQ(Bf16::from(1 + 0x1p-8f).value(), 1);
}

TEST(Half, IsTheNearestAndOfTwoTheEvenOne) {
  const auto rounded = [](float x) { return Half::from(x).value(); };
  EXPECT_EQ(rounded(2049), 2048);
  EXPECT_EQ(rounded(2051), 2052);
  EXPECT_EQ(rounded(2049.01f), 2050);
  EXPECT_EQ(rounded(65519), 65504);
  EXPECT_EQ(rounded(65520), std::numeric_limits<float>::infinity());
  EXPECT_EQ(rounded(-1e9f), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(rounded(0x1p-25f), 0);
  EXPECT_EQ(rounded(0x1.8p-25f), 0x1p-24f);
  EXPECT_EQ(rounded(-0x1.8p-24f), -0x1p-23f);
}

TEST(Compressors, KeepToWhatTheySay) {
  ASSERT_GE(compressors().size(), 2u);
  for (const Compressor& m : compressors()) EXPECT_EQ(why_wrong(m), "") << m.name;
}

TEST(BytePsForm, KeepsToWhatItSaysUnderTheNameOfTheMethod) {
  for (const Compressor& m : compressors()) {
    const Compressor& form = byteps_form(m);
    EXPECT_EQ(form.name, m.name);
    EXPECT_EQ(form.cost.source, m.cost.source);
    EXPECT_EQ(form.kept, m.kept);
    EXPECT_EQ(why_wrong(form), "") << m.name;
  }
}

// Payloads come from other processes. Under AddressSanitizer this finds accesses out of bounds.
TEST(Compressors, TakePayloadsThatAreCutOrGarbled) {
  checking::Dice dice(1);
  const auto any_byte = [&] { return static_cast<std::byte>(dice.below(256)); };
  for (const Compressor& each : compressors())
    for (const Compressor* m : {&each, &byteps_form(each)}) {
      if (m->rounds > 1) continue;  // such a method has no servers, and its sums have one size
      SCOPED_TRACE(m->name);
      PieceCompression how{.method = m};
      how.options.ratio = 0.3;
      for (const std::size_t elements : {1u, 7u, 100u}) {
        std::vector<float> tensor(elements);
        for (float& x : tensor) x = static_cast<float>(dice.below(2001)) * 0.001f - 1;
        const std::vector<std::byte> right = payload_of(*m, tensor, how.options);
        for (int trial = 0; trial < 200; ++trial) {
          std::vector<std::byte> payload = right;
          const bool garbage = trial % 4 == 0;
          for (std::byte& b : payload)
            if (garbage || dice.below(8) == 0) b = any_byte();
          if (trial % 2 != 0) payload.resize(dice.below(right.size() + 10), any_byte());
          payload.shrink_to_fit();
          EXPECT_EQ(PieceCodec::decompressed(how, 1, 0, payload, elements).size(), elements);
        }
      }
    }
}

// By hand: 33 elements take two words; the first, the third and the last one are negative.
TEST(BytePsForm, PacksTheSignsOfOneBit) {
  const Compressor& one_bit = byteps_form(method_named("onebit"));
  std::vector<float> tensor(33, 1);
  tensor[0] = -3;
  tensor[2] = -0.5f;
  tensor[32] = -2.5f;
  const std::vector<std::byte> payload = payload_of(one_bit, tensor, {});
  ASSERT_EQ(payload.size(), 12u);
  EXPECT_EQ(payload_bytes(one_bit, 33, {}), 12u);
  EXPECT_EQ(payload_bytes(one_bit, 32, {}), 8u);
  EXPECT_EQ(payload_bytes(one_bit, 1'024'000, {}), 128'004u);
  std::uint32_t words[2];
  std::memcpy(words, payload.data(), sizeof words);
  EXPECT_EQ(words[0], 0xa0000000u);
  EXPECT_EQ(words[1], 0x80000000u);
  const float mean = 36.0f / 33;
  std::vector<float> back(33), expected(33, mean);
  for (const int i : {0, 2, 32}) expected[static_cast<std::size_t>(i)] = -mean;
  one_bit.decompress(payload, {}, back);
  EXPECT_EQ(back, expected);
}

std::vector<float> there_and_back(const Compressor& m, const std::vector<float>& tensor,
                                  double ratio) {
  CompressionOptions options;
  options.ratio = ratio;
  std::vector<std::byte> payload(payload_bytes(m, tensor.size(), options));
  m.compress(tensor, options, payload.data());
  std::vector<float> back(tensor.size());
  m.decompress(payload, options, back);
  return back;
}

TEST(TopK, KeepsTheLargestAndOfEqualOnesTheFirst) {
  const Compressor& top = method_named("topk");
  using Floats = std::vector<float>;
  EXPECT_EQ(there_and_back(top, {1, -5, 3, 4, 0}, 0.4), (Floats{0, -5, 0, 4, 0}));
  EXPECT_EQ(there_and_back(top, {2, -2, 2, -2, 2}, 0.6), (Floats{2, -2, 2, 0, 0}));
  EXPECT_EQ(there_and_back(top, {0, 0, 0, 0, 0}, 0.4), (Floats{0, 0, 0, 0, 0}));
  EXPECT_EQ(there_and_back(top, {7}, 0.001), (Floats{7}));
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(there_and_back(top, {1, -inf, 3, inf}, 0.5), (Floats{0, -inf, 0, inf}));
  EXPECT_TRUE(std::isnan(there_and_back(top, {1, NAN, 3, inf}, 0.25)[1]));
  const Floats tensor{1, -5, 3, 4, 0};
  EXPECT_EQ(top.error(tensor, {0.4}), 3);
  EXPECT_EQ(top.error(tensor, {1}), 0);
}

TEST(TopK, SendsAValueAndAPlaceForEachOfItsElements) {
  const Compressor& top = method_named("topk");
  EXPECT_EQ(payload_bytes(top, 25'000'000, {0.01}), 2'000'000u);
  EXPECT_EQ(payload_bytes(top, 99, {0.01}), 8u);  // at least one element
  EXPECT_EQ(payload_bytes(top, 10, {1}), 80u);
  EXPECT_EQ(payload_bytes(method_named("fp16"), 10, {0.01}), 20u);
}

// The checker's finding on fp16 or topk after `change`.
std::string wrong(const char* name, void (*change)(Compressor&)) {
  Compressor m = method_named(name);
  change(m);
  return why_wrong(m);
}

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(WhyWrong, FindsWhatAMethodDoesNotKeepTo) {
  expect_says(wrong("topk", [](Compressor& m) { m.error = [](auto, auto&) { return 0.0; }; }),
              "more than error() allows");
  expect_says(wrong("topk",
                    [](Compressor& m) {
                      m.size = [](std::uint64_t, auto&) -> std::uint64_t { return 8; };
                    }),
              "writes more than the 8 bytes");
  expect_says(wrong("fp16", [](Compressor& m) { m.compress = [](auto, auto&, std::byte*) {}; }),
              "unwritten");
  expect_says(wrong("topk", [](Compressor& m) { m.exchange = Func::all_reduce; }),
              "must be linear");
  expect_says(wrong("fp16", [](Compressor& m) { m.exchange = Func::broadcast; }), "all_gather");
  expect_says(wrong("fp16", [](Compressor& m) { m.cost.source = ""; }), "source");
  expect_says(wrong("fp16", [](Compressor& m) { m.decompress = nullptr; }), "decompress");
  expect_says(wrong("fp16",
                    [](Compressor& m) {
                      m.decompress = [](auto, auto&, std::span<float> t) {
                        std::fill(t.begin(), t.end(), NAN);
                      };
                    }),
              "more than error() allows");
}

}  // namespace
}  // namespace ghostrank
