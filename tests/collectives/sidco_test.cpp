// How near SIDCo and its rivals come to the ratio that is asked for, by law of the gradients.
#include "collectives/compress/sidco.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/compressor.h"
#include "collectives/gradient_law.h"

namespace ghostrank {
namespace {

constexpr std::size_t kElements = 200'000;

struct Law {
  const char* name;
  GradientLaw law;
};
GradientLaw of(GradientLaw::Kind kind, double shape) {
  GradientLaw law;
  law.kind = kind;
  law.shape = shape;
  return law;
}
const Law kLaws[] = {{"exponential", of(GradientLaw::Kind::laplace, 1)},
                     {"gamma 0.7", of(GradientLaw::Kind::gamma, 0.7)},
                     {"gaussian", of(GradientLaw::Kind::gaussian, 1)},
                     {"pareto 0.2", of(GradientLaw::Kind::pareto, 0.2)}};

const Compressor& method(std::string_view name) {
  const auto all = compressors();
  return *std::find_if(all.begin(), all.end(), [&](const auto& m) { return m.name == name; });
}

// Mean of achieved over asked ratio, over the last of several steps; SIDCo adapts its stages.
double achieved(const char* name, const GradientLaw& law, double ratio) {
  const Compressor& m = method(name);
  constexpr int kSteps = 30, kCounted = 15;
  const bool adapts = std::string_view(name).starts_with("sidco");
  SidcoStages control(ratio);
  std::vector<float> tensor(kElements);
  double sum = 0;
  for (int step = 0; step < kSteps; ++step) {
    if (!adapts && step < kSteps - kCounted) continue;
    law.draw(static_cast<std::uint64_t>(step), tensor);
    CompressionOptions options;
    options.ratio = ratio;
    options.seed = static_cast<std::uint64_t>(step);
    if (adapts) options.stages = control.stages();
    const double share = static_cast<double>(m.carried(m.measure(tensor, options))) / kElements;
    if (adapts) control.sent(share);
    if (step >= kSteps - kCounted) sum += share / ratio / kCounted;
  }
  return sum;
}

TEST(Sidco, ReachesTheRatioOfTheLawsThatItFits) {
  std::printf("%-12s %-6s %8s %8s %8s %8s %8s %8s\n", "law", "ratio", "sidco-e", "sidco-p",
              "sidco-gp", "dgc", "redsync", "gaussian");
  for (const Law& law : kLaws)
    for (const double ratio : {0.1, 0.01, 0.001}) {
      SCOPED_TRACE(law.name);
      const double e = achieved("sidco-e", law.law, ratio), p = achieved("sidco-p", law.law, ratio),
                   gp = achieved("sidco-gp", law.law, ratio);
      std::printf("%-12s %-6g %8.3f %8.3f %8.3f %8.3f %8.3f %8.3f\n", law.name, ratio, e, p, gp,
                  achieved("dgc", law.law, ratio), achieved("redsync", law.law, ratio),
                  achieved("gaussian_ksgd", law.law, ratio));
      // Only where the law is the one that a method fits: elsewhere the published rule for stages,
      // which takes one off while too much is sent, can stay at a single stage that sends too much.
      if (&law == kLaws) {
        EXPECT_NEAR(e, 1, 0.05) << ratio;
      }
      if (&law == kLaws || law.law.kind == GradientLaw::Kind::pareto) {
        EXPECT_NEAR(p, 1, 0.05) << ratio;
      }
    }
}

TEST(SidcoStages, GrowWhileTooLittleIsSentAndShrinkWhileTooMuchIs) {
  SidcoStages control(0.01);
  EXPECT_EQ(control.stages(), 1);
  for (int i = 0; i < 5; ++i) control.sent(0.005);
  EXPECT_EQ(control.stages(), 2);
  for (int i = 0; i < 5; ++i) control.sent(0.01);
  EXPECT_EQ(control.stages(), 2);
  for (int i = 0; i < 15; ++i) control.sent(0.05);
  EXPECT_EQ(control.stages(), 1);
  for (int i = 0; i < 100; ++i) control.sent(0);
  EXPECT_EQ(control.stages(), 7);  // no more than halvings that lead to the ratio
  EXPECT_EQ(sidco_stages(0.3, 0.2), 1);
  EXPECT_EQ(sidco_stages(0.05, 0.2), 2);
  EXPECT_EQ(sidco_stages(0.01, 0.2), 3);
}

}  // namespace
}  // namespace ghostrank
