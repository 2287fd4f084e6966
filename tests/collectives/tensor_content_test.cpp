// The content of tensors: density as stated, overlap as named, each block computed alone, exact
// sums.
#include "collectives/tensor_content.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
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

std::shared_ptr<const std::vector<double>> shares(std::vector<double> of_ranks) {
  return std::make_shared<const std::vector<double>>(std::move(of_ranks));
}

TEST(TensorContent, OverlapsAsWasMeasured) {
  const Sparsity sparsity{0.3, 10, Overlap::measured, shares({0.5, 0.2, 0.1, 0.1, 0.1})};
  const TensorContent c(sparsity, tensor_key(1, 2, 3, 4), 4, 10'000);
  std::vector<std::uint64_t> on_so_many(5), of_rank(4);
  for (std::uint64_t b = 0; b < c.blocks(); ++b) {
    std::size_t ranks = 0;
    for (GroupRank r = 0; r < 4; ++r) {
      ranks += c.nonzero(r, b);
      of_rank[static_cast<std::size_t>(r)] += c.nonzero(r, b);
    }
    ++on_so_many[ranks];
  }
  EXPECT_EQ(on_so_many, (std::vector<std::uint64_t>{500, 200, 100, 100, 100}));
  // (200 + 2 * 100 + 3 * 100 + 4 * 100) / 4 blocks of a rank on average; each block draws ranks.
  for (const std::uint64_t blocks : of_rank) EXPECT_NEAR(static_cast<double>(blocks), 275, 50);
  EXPECT_DOUBLE_EQ(sparsity.union_density(4), 0.5);
  EXPECT_EQ(sparsity.refuses(4), "");
  EXPECT_EQ(sparsity.refuses(8), "the overlap was measured on 4 ranks, and the group has 8");
}

TEST(TensorContent, MeasuredSharesHaveTheMeansThatTheyAreMadeOf) {
  for (const int ranks : {1, 2, 8})
    for (const auto& [d, u] : {std::pair{0.1, 0.1}, std::pair{0.1, 0.1 + 0.05 * (ranks > 1)}}) {
      const Sparsity sparsity = Sparsity::of_means(d, u, ranks, 64);
      double sum = 0, mean = 0;
      for (std::size_t k = 0; k < sparsity.measured->size(); ++k) {
        EXPECT_GE((*sparsity.measured)[k], -1e-12);
        sum += (*sparsity.measured)[k];
        mean += (*sparsity.measured)[k] * static_cast<double>(k) / ranks;
      }
      EXPECT_NEAR(sum, 1, 1e-12);
      EXPECT_NEAR(mean, d, 1e-12);
      EXPECT_NEAR(sparsity.union_density(ranks), u, 1e-12);
    }
}

TEST(ZipfTable, SharesOutTheIdsByZipfsLaw) {
  for (const double exponent : {0.0, 0.8, 1.0, 1.3})
    for (const std::uint64_t rows : {1, 10, 1000, 100'000}) {
      double sum = 0;
      for (std::uint64_t k = 1; k <= rows; ++k) sum += std::pow(static_cast<double>(k), -exponent);
      EXPECT_NEAR(zipf_weight(rows, exponent) * sum, 1, 1e-5) << exponent << " " << rows;
    }
  const ZipfTable table{0, 1000, 4, 1, 50, zipf_weight(1000, 1)};
  EXPECT_NEAR(table.probability(9), 1 - std::pow(1 - 0.1 * table.weight, 50), 1e-12);
  EXPECT_EQ((ZipfTable{0, 1, 4, 1, 50, 1}.probability(0)), 1);
}

// The sparsity decides about blocks outside the tables. A block that lies partly in a table is
// nonzero if one of the rows or the sparsity makes it so.
TEST(TensorContent, RowsOfTablesAreNonzeroWhereTheirIdsWereDrawn) {
  auto layout = std::make_shared<TensorLayout>();
  layout->tables = {{1000, 20'000, 16, 1, 500, zipf_weight(20'000, 1)},
                    {321'000, 300, 100, 0.5, 100, zipf_weight(300, 0.5)}};
  constexpr std::uint64_t kElements = 400'000, kBlock = 64;
  constexpr int kRanks = 4;
  const auto of_iteration = [&](std::uint32_t i) {
    return TensorContent({1, kBlock, Overlap::random}, tensor_key(1, 0, 1, i), kRanks, kElements,
                         layout);
  };
  const TensorContent c = of_iteration(0);
  for (const std::uint64_t dense : {0, 15, 5015, 5485, 6249}) EXPECT_TRUE(c.nonzero(0, dense));
  EXPECT_NE(bitmap(c, 0), bitmap(c, 1));
  EXPECT_NE(bitmap(c, 0), bitmap(of_iteration(1), 0));
  double sum = 0, any = 0;
  constexpr int kDraws = 10;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const TensorContent drawn = of_iteration(i);
    EXPECT_EQ(drawn.nonzero_elements(2), ones(bitmap(drawn, 2)) * kBlock);
    for (GroupRank r = 0; r < kRanks; ++r) sum += static_cast<double>(ones(bitmap(drawn, r)));
    any += static_cast<double>(ones(united(drawn)));
  }
  const auto blocks = static_cast<double>(c.blocks());
  const auto means = layout->means(c.sparsity(), kRanks, 0, c.blocks());
  EXPECT_NEAR(means.density / (sum / kDraws / kRanks / blocks), 1, 0.02);
  EXPECT_NEAR(means.union_density / (any / kDraws / blocks), 1, 0.02);
  EXPECT_LT(means.density, 0.35);
}

// Each part draws its own order of blocks. Parts of few blocks keep their density only on average.
TEST(TensorContent, PartsAreAsSparseAsTheySay) {
  const auto shares = [](std::vector<double> of) {
    double density = 0;
    for (std::size_t k = 0; k < of.size(); ++k)
      density += of[k] * static_cast<double>(k) / static_cast<double>(of.size() - 1);
    return Sparsity{density, 10, Overlap::measured,
                    std::make_shared<const std::vector<double>>(std::move(of))};
  };
  auto layout = std::make_shared<TensorLayout>();
  layout->parts = {{95, 5'000, shares({0.5, 0.25, 0.25})},    // blocks 10 to 499
                   {5'000, 5'005, shares({0.2, 0.5, 0.3})},   // one block
                   {5'005, 5'009, shares({0, 0, 1})},         // none
                   {6'000, 8'000, {0.1, 10, Overlap::all}}};  // 200 blocks
  const Sparsity elsewhere = shares({0, 0, 1});
  constexpr std::uint64_t kElements = 10'000;
  constexpr int kDraws = 4000;
  double one = 0, big = 0;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const TensorContent c(elsewhere, tensor_key(1, 0, 1, i), 2, kElements, layout);
    one += c.nonzero(0, 500) + c.nonzero(1, 500);
    if (i >= 100) continue;
    EXPECT_TRUE(c.nonzero(0, 0) && c.nonzero(0, 9) && c.nonzero(1, 501) && c.nonzero(1, 999));
    std::uint64_t both = 0, any = 0, same = 0;
    for (std::uint64_t b = 10; b < 500; ++b) {
      both += c.nonzero(0, b) && c.nonzero(1, b);
      any += c.nonzero(0, b) || c.nonzero(1, b);
    }
    EXPECT_NEAR(static_cast<double>(both), 0.25 * 490, 1);
    EXPECT_NEAR(static_cast<double>(any), 0.5 * 490, 1);
    for (std::uint64_t b = 600; b < 800; ++b) {
      EXPECT_EQ(c.nonzero(0, b), c.nonzero(1, b));
      same += c.nonzero(0, b);
    }
    EXPECT_EQ(same, 20u);
    big += static_cast<double>(c.nonzero_elements(0) + c.nonzero_elements(1)) / 2;
  }
  EXPECT_NEAR(one / kDraws / 2, 0.55, 0.03);
  const MeanDensities means = layout->means(elsewhere, 2, 0, kElements / 10);
  EXPECT_NEAR(means.density * kElements, big / 100, 0.01 * kElements);
  EXPECT_NEAR(means.union_density, (490 * 0.5 + 0.8 + 20 + 309) / 1000, 1e-12);
  // Means of a stretch.
  EXPECT_NEAR(layout->means(elsewhere, 2, 490, 510).density, (10 * 0.375 + 0.55 + 9) / 20, 1e-12);
}

}  // namespace
}  // namespace ghostrank
