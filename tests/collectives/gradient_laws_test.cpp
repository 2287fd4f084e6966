// Laws of gradients tensor by tensor, and how they drift.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/gradients/gradient_law.h"

namespace ghostrank {
namespace {

double mean_of_magnitudes(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += std::abs(value);
  return sum / static_cast<double>(values.size());
}

GradientLaw law(GradientLaw::Kind kind, double scale, double shape = 1,
                const GradientDrift& drift = {}) {
  return {kind, shape, scale, {}, drift};
}

const GradientLaw kLaplace = law(GradientLaw::Kind::laplace, 1);
const GradientLaw kTenfold = law(GradientLaw::Kind::gaussian, 10);

TEST(GradientLaws, OfAJobWithOneAreThatLaw) {
  std::vector<float> alone(1000), together(1000);
  kLaplace.draw(7, alone);
  GradientLaws{{kLaplace}}.draw(7, 3, 12345, 1000, together);
  EXPECT_EQ(alone, together);
}

TEST(GradientLaws, GiveEveryPartOfATensorItsOwn) {
  const GradientLaws laws{{kLaplace, kTenfold}, {{30'000, 0}, {50'000, 1}, {20'000, 0}}};
  EXPECT_EQ(laws.elements(), 100'000u);
  // A tensor from the middle of the first part to the middle of the last.
  std::vector<float> tensor(80'000);
  laws.draw(1, 0, 10'000, 80'000, tensor);
  const std::span<const float> drawn(tensor);
  EXPECT_NEAR(mean_of_magnitudes(drawn.first(20'000)), 1, 0.03);
  EXPECT_NEAR(mean_of_magnitudes(drawn.subspan(20'000, 50'000)), 10, 0.3);
  EXPECT_NEAR(mean_of_magnitudes(drawn.last(10'000)), 1, 0.04);
}

// A sample holds each part's share of the tensor, give or take one gradient.
TEST(GradientLaws, OfASampleHaveTheirSharesOfTheTensor) {
  const GradientLaw zero{GradientLaw::Kind::measured, 1, 1, {{1e-6, 1}}},
      one{GradientLaw::Kind::measured, 1, 1, {{1 - 1e-6, 0}, {1, 1}}};
  for (const std::uint64_t ones : {1u, 2u, 999u, 1000u, 7777u}) {
    const GradientLaws laws{{zero, one}, {{5000, 0}, {ones, 1}, {12'223 - ones, 0}}};
    for (const std::size_t size : {1u, 10u, 1024u, 12'000u, 17'000u}) {
      std::vector<float> sample(size);
      laws.draw(3, 0, 100, 17'000, sample);
      const auto large = std::count_if(sample.begin(), sample.end(),
                                       [](float value) { return std::abs(value) > 0.5f; });
      const double share = static_cast<double>(ones) / 17'000 * static_cast<double>(size);
      EXPECT_LE(std::abs(static_cast<double>(large) - share), 1) << ones << " in " << size;
      if (size == 17'000) {
        EXPECT_EQ(static_cast<std::uint64_t>(large), ones);
      }
    }
  }
}

TEST(GradientLaws, DriftByTheirFactorsUntilTheyStay) {
  const GradientLaw drifting =
      law(GradientLaw::Kind::gamma, 1, 0.5, {.scale = 0.5, .shape = 1.1, .until = 3});
  EXPECT_EQ(drifting.in(0), law(GradientLaw::Kind::gamma, 1, 0.5));
  for (const std::uint32_t i : {1u, 2u, 3u}) {
    EXPECT_DOUBLE_EQ(drifting.in(i).scale, std::pow(0.5, i));
    EXPECT_DOUBLE_EQ(drifting.in(i).shape, 0.5 * std::pow(1.1, i));
  }
  EXPECT_EQ(drifting.in(1'000'000), drifting.in(3));
  const GradientLaws laws{{drifting}};
  EXPECT_TRUE(laws.drift());
  EXPECT_FALSE(GradientLaws{{kLaplace}}.drift());
  for (const std::uint32_t i : {0u, 2u, 9u}) {
    std::vector<float> tensor(100'000), again(100'000);
    laws.draw(i, i, 0, tensor.size(), tensor);
    laws.draw(i, i, 0, again.size(), again);
    EXPECT_EQ(tensor, again);
    EXPECT_NEAR(mean_of_magnitudes(tensor), drifting.in(i).scale, 0.02 * drifting.in(i).scale);
  }
}

TEST(GradientLaws, OfHistogramsDriftWithTheirBins) {
  const GradientLaw measured{
      GradientLaw::Kind::measured, 1, 1, {{1, 3}, {2, 1}}, {.scale = 2, .until = 2}};
  EXPECT_EQ(measured.in(5).bins, (std::vector<GradientLaw::Bin>{{4, 3}, {8, 1}}));
}

}  // namespace
}  // namespace ghostrank
