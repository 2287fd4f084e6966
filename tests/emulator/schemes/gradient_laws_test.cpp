// Jobs whose gradients have laws by tensor, which drift: what ranks send follows them, and real
// data is theirs.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/traffic/tensor_use.h"
#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/layers_job.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

std::string two_layer_job(const std::string& more) {
  return test::text_of({.layers = {{"[30000, 20]"}, {"[50000]"}}, .nodes = 3}) + more;
}

// What all ranks together send of the gradients, as a share, by iteration.
std::vector<double> sent_shares(const std::string& more) {
  const LoadedJob loaded = test::load_text(two_layer_job(more));
  const Workload workload = plan_workload(loaded.spec);
  std::vector<double> shares;
  for (const Program& program : workload.roles[0].iterations) {
    double sent = 0;
    for (const Op& op : program.streams[1])
      if (op.kind == Op::Kind::collective && op.func == Func::all_gather_v)
        sent += static_cast<double>(elements_of(workload, op) * bytes_of(op.dtype)) / 8;
    shares.push_back(sent / (80'020.0 * workload.ranks));
  }
  return shares;
}

Result played(const std::string& more) {
  return testing::play(test::load_text(two_layer_job(more)));
}

// Laplace's magnitudes exceed t with the probability exp(-t / scale).
TEST(GradientLawsInJobs, DecideWhatEachPartOfABucketSendsInEveryIteration) {
  const std::vector<double> shares = sent_shares(
      "compression: {method: threshold, threshold: 1, merge: model}\n"
      "tensors:\n"
      "  distribution:\n"
      "  - {tensors: 'a.*', law: laplace, scale: 1, drift: {scale: 0.7, until: 4}}\n"
      "  - {law: laplace, scale: 0.5}\n"
      "run: {warmup: 2, iterations: 6}\n");
  ASSERT_EQ(shares.size(), 8u);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double scale = std::pow(0.7, std::min<double>(4, static_cast<double>(i)));
    const double expected = (30'020 * std::exp(-1 / scale) + 50'000 * std::exp(-1 / 0.5)) / 80'020;
    EXPECT_NEAR(shares[i], expected, 4 * std::sqrt(expected / (3 * 80'020))) << i;
  }
}

// The exponential that sidco-e fits has too light a tail for gamma 0.5, and too heavy a one for
// gamma 2.
TEST(GradientLawsInJobs, MoveTheRatioThatAMethodAchieves) {
  const std::vector<double> shares = sent_shares(
      "compression: {method: sidco-e, ratio: 0.01, stages: 1}\n"
      "tensors: {distribution: gamma 0.5, drift: {shape: 1.2}}\n"
      "run: {warmup: 0, iterations: 9}\n");
  ASSERT_EQ(shares.size(), 9u);
  EXPECT_GT(shares.front(), 0.012);
  EXPECT_LT(shares.back(), 0.008);
  for (std::size_t i = 1; i < shares.size(); ++i) EXPECT_LT(shares[i], shares[i - 1] * 1.05);
}

TEST(GradientLawsInJobs, AreDrawnFromTheSeed) {
  const std::string drifting =
      "compression: {method: dgc}\ntensors: {drift: {scale: 0.9}}\nrun: {seed: ";
  EXPECT_EQ(sent_shares(drifting + "1}\n"), sent_shares(drifting + "1}\n"));
  EXPECT_NE(sent_shares(drifting + "1}\n"), sent_shares(drifting + "2}\n"));
}

TEST(GradientLawsInJobs, AreThoseOfRealDataInEveryIteration) {
  const std::string rules =
      "tensors:\n"
      "  drift: {scale: 0.8}\n"
      "  distribution:\n"
      "  - {tensors: 'a.0', law: gamma 0.5, scale: 0.002, drift: {scale: 0.7, shape: 1.2}}\n"
      "  - {law: laplace}\n";
  for (const char* kind : {"virtual", "memory"})
    for (const char* compression : {"threshold, threshold: 0.002", "dgc, merge: tensor",
                                    "sidco-gp, merge: model", "dgc, memory: residual"}) {
      if (std::string(kind) == "memory" && !std::string(compression).starts_with("dgc, merge"))
        continue;
      SCOPED_TRACE(std::string(kind) + ": " + compression);
      const Result result =
          played(std::string("compression: {method: ") + compression + "}\nfabric: {kind: " + kind +
                 "}\nscale: {dilation: " + (std::string(kind) == "memory" ? "50" : "auto") + "}\n" +
                 rules + "run: {warmup: 1, iterations: 3, verify: true}\n");
      EXPECT_EQ(result.interrupted, "");
      EXPECT_GT(result.verify->checked_elements, 3u * 3 * 80'020);
      EXPECT_EQ(result.verify->wrong_elements, 0u);
    }
}

// A step sends ever less; a result and a plan tell the mean of the measured steps.
TEST(GradientLawsInJobs, ResultsTellWhatTheMeasuredStepsSendOnAverage) {
  const LoadedJob loaded = test::load_text(two_layer_job(
      "compression: {method: threshold, threshold: 0.001}\ntensors: {drift: {scale: 0.9}}\n"
      "fabric: {kind: virtual}\nrun: {warmup: 2, iterations: 3}\n"));
  const Workload workload = plan_workload(loaded.spec);
  double bytes = 0;
  for (const std::uint32_t step : {2, 3, 4})
    bytes += static_cast<double>(compression_use(loaded.spec, workload, step)->payload_bytes);
  const Result result = testing::play(loaded, workload);
  EXPECT_NEAR(static_cast<double>(result.compression->payload_bytes), bytes / 3, 1);
  EXPECT_EQ(compression_use(loaded.spec, workload, 2, 0, 3)->payload_bytes,
            result.compression->payload_bytes);
}

std::uint64_t planned_bytes(const std::string& parameters, const std::string& compression,
                            const std::vector<std::string>& overrides, std::uint32_t step = 0) {
  const LoadedJob loaded =
      test::load_text(test::text_of({.layers = {{parameters}}, .nodes = 3}) +
                          "compression: {method: " + compression + "}\nfabric: {kind: virtual}\n",
                      overrides);
  return compression_use(loaded.spec, plan_workload(loaded.spec), step)->payload_bytes;
}

// Of methods that scale by the largest element or by the norm, or whose ratio is less than one of
// thousands, parts of a tensor say little.
TEST(GradientLawsInJobs, PlansOfLargeTensorsSendAsMuchAsRealDataDoes) {
  for (const char* how : {"redsync, ratio: 0.01", "dgc, ratio: 0.0001", "dithering"}) {
    const auto planned = static_cast<double>(planned_bytes("[4000000]", how, {})),
               real = static_cast<double>(planned_bytes("[4000000]", how, {"run.verify=true"}));
    EXPECT_NEAR(planned, real, 0.1 * real) << how;
  }
  // Larger than what is drawn.
  const char* how = "dithering, normalize: l2, quantum: 64";
  const auto planned = static_cast<double>(planned_bytes("[8000000]", how, {})),
             real = static_cast<double>(planned_bytes("[8000000]", how, {"run.verify=true"}));
  EXPECT_NEAR(planned, real, 0.05 * real);
}

// With a memory 64 steps are planned, however many are played.
TEST(GradientLawsInJobs, PlansWithAMemoryDoNotDependOnTheNumberOfSteps) {
  const char* how = "threshold, threshold: 0.004, memory: residual";
  const std::uint64_t few = planned_bytes("[50000]", how, {"run.iterations=70"}, 5);
  EXPECT_EQ(planned_bytes("[50000]", how, {"run.iterations=7000"}, 5), few);
}

}  // namespace
}  // namespace ghostrank
