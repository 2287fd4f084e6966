// The content of tensors: density as stated, overlap as named, each block computed alone, exact
// sums.
#include "collectives/tensor_content.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

TensorContent content(double density, Overlap overlap, int ranks, std::uint64_t elements,
                      std::uint64_t block = 256, std::uint32_t iteration = 0) {
  return {{density, block, overlap}, tensor_key(1, 2, 3, iteration), ranks, elements};
}

std::vector<bool> bitmap(const TensorContent& c, GroupRank rank) {
  std::vector<bool> bits;
  for (std::uint64_t b = 0; b < c.blocks(); ++b) bits.push_back(c.nonzero(rank, b));
  return bits;
}

std::uint64_t ones(const std::vector<bool>& bits) {
  return static_cast<std::uint64_t>(std::count(bits.begin(), bits.end(), true));
}

std::vector<bool> united(const TensorContent& c) {
  std::vector<bool> any(c.blocks());
  for (GroupRank r = 0; r < c.ranks(); ++r)
    for (std::uint64_t b = 0; b < c.blocks(); ++b) any[b] = any[b] || c.nonzero(r, b);
  return any;
}

TEST(TensorContent, HasSoManyBlocksOnEveryRankAsTheDensitySays) {
  for (const std::uint64_t blocks : {1, 2, 3, 7, 64, 1000})
    for (const double density : {0.0, 0.01, 0.1, 0.5, 0.77, 1.0})
      for (const Overlap overlap : {Overlap::random, Overlap::all}) {
        const TensorContent c = content(density, overlap, 3, blocks * 10 - 3, 10);
        ASSERT_EQ(c.blocks(), blocks);
        for (GroupRank r = 0; r < 3; ++r)
          EXPECT_EQ(ones(bitmap(c, r)), static_cast<std::uint64_t>(
                                            std::llround(density * static_cast<double>(blocks))));
      }
}

TEST(TensorContent, OverlapsAsItIsNamed) {
  const TensorContent all = content(0.2, Overlap::all, 4, 100'000);
  for (GroupRank r = 1; r < 4; ++r) EXPECT_EQ(bitmap(all, r), bitmap(all, 0));
  // Four times 0.22 of 391 blocks is 344.08; no two ranks share a block.
  const TensorContent none = content(0.22, Overlap::none, 4, 100'000);
  EXPECT_EQ(ones(united(none)), 344u);
  std::uint64_t sum = 0;
  for (GroupRank r = 0; r < 4; ++r) {
    sum += ones(bitmap(none, r));
    EXPECT_NEAR(static_cast<double>(ones(bitmap(none, r))), 0.22 * 391, 1);
  }
  EXPECT_EQ(sum, 344u);
  for (const double density : {0.1, 0.5}) {
    const TensorContent random = content(density, Overlap::random, 8, 20'000, 1);
    EXPECT_NEAR(static_cast<double>(ones(united(random))) / 20'000,
                random.sparsity().union_density(8), 0.01);
  }
  EXPECT_NEAR((Sparsity{0.1, 256, Overlap::none}).union_density(8), 0.8, 1e-12);
  EXPECT_EQ((Sparsity{0.1, 256, Overlap::all}).union_density(8), 0.1);
}

TEST(TensorContent, RefusesMoreThanAllBlocksWithoutOverlap) {
  const Sparsity tenth{0.1, 256, Overlap::none};
  EXPECT_EQ(tenth.refuses(10), "");
  EXPECT_EQ(tenth.refuses(11),
            "the blocks of 11 ranks do not all differ; set tensors.density to at most 0.0909, or "
            "tensors.overlap to random or all");
  EXPECT_EQ((Sparsity{0.9, 256, Overlap::random}).refuses(11), "");
}

TEST(TensorContent, DiffersBetweenRanksTensorsIterationsAndCommunicators) {
  const auto drawn = [](std::uint32_t group, std::uint32_t tensor, std::uint32_t iteration) {
    return bitmap({{0.5, 1, Overlap::random}, tensor_key(1, group, tensor, iteration), 2, 100}, 0);
  };
  EXPECT_EQ(drawn(0, 1, 0), drawn(0, 1, 0));
  EXPECT_NE(drawn(0, 1, 0), drawn(0, 1, 1));
  EXPECT_NE(drawn(0, 1, 0), drawn(0, 2, 0));
  EXPECT_NE(drawn(0, 1, 0), drawn(1, 1, 0));
  const TensorContent c = content(0.5, Overlap::random, 2, 100, 1);
  EXPECT_NE(bitmap(c, 0), bitmap(c, 1));
}

TEST(TensorContent, OfAnyPartIsThatOfTheWhole) {
  for (const int ranks : {1, 3, 300}) {
    const TensorContent c = content(0.4, Overlap::random, ranks, 1000, 37);
    std::vector<std::int16_t> whole(1000), sums(1000), part(1000);
    std::vector<int> added(1000);
    for (GroupRank r = 0; r < ranks; ++r) {
      c.values(r, 0, 1000, whole.data());
      std::uint64_t held = 0;
      for (std::uint64_t e = 0; e < 1000; ++e) {
        added[e] += whole[e];
        held += c.nonzero(r, e / 37);
        if (ranks <= TensorContent::kLargestSum) {
          EXPECT_EQ(whole[e] != 0, c.nonzero(r, e / 37));
        } else if (!c.nonzero(r, e / 37)) {
          EXPECT_EQ(whole[e], 0);
        }
      }
      EXPECT_EQ(c.nonzero_elements(r), held);
      for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{36}, std::uint64_t{500}}) {
        c.values(r, first, 90, part.data());
        EXPECT_TRUE(std::equal(part.begin(), part.begin() + 90,
                               whole.begin() + static_cast<std::ptrdiff_t>(first)));
      }
    }
    c.sums(0, 1000, sums.data());
    for (std::size_t e = 0; e < 1000; ++e) {
      EXPECT_EQ(sums[e], added[e]);
      EXPECT_LE(added[e], TensorContent::kLargestSum);
    }
    c.sums(111, 300, part.data());
    EXPECT_TRUE(std::equal(part.begin(), part.begin() + 300, sums.begin() + 111));
  }
}

TEST(TensorContent, SaysOfARangeWhetherAnyBlockInItIsNotZero) {
  const TensorContent c = content(0.1, Overlap::random, 2, 1000, 10);
  for (std::uint64_t first = 0; first < 990; first += 7)
    for (const std::uint64_t elements : {1, 9, 10, 25}) {
      bool any = false;
      for (std::uint64_t e = first; e < std::min<std::uint64_t>(1000, first + elements); ++e)
        any = any || c.nonzero(1, e / 10);
      EXPECT_EQ(c.nonzero(1, first, std::min(elements, 1000 - first)), any);
    }
  EXPECT_FALSE(c.nonzero(1, 0, 0));
}

}  // namespace
}  // namespace ghostrank
