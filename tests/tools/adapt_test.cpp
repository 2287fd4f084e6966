// The controller of ratios on a network that is a formula, and what it knows of a planned step.
#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"
#include "tools/adapt/ratio_controller.h"

namespace ghostrank {
namespace {

using Ratios = std::vector<double>;

// Three tensors of a million elements, whose gradients are there after 10, 20 and 30 ms.
CompressedStep three() {
  using Kind = StreamPart::Kind;
  CompressedStep step;
  step.computed = 0.03;
  for (std::size_t i = 0; i < 3; ++i) {
    step.calls.push_back({static_cast<std::uint32_t>(i + 1), 1'000'000});
    step.stream.push_back({Kind::wait, 0.01 * static_cast<double>(i + 1), 0});
    step.stream.push_back({Kind::compute, 0.001, 0});
    step.stream.push_back({Kind::send, 0, i});
  }
  return step;
}

double payload(const CompressedCall& call, double ratio) {
  return 8 * ratio * static_cast<double>(call.elements);
}

// When the network has exchanged all, and what its calls took.
struct Network {
  double byte = 1e-9, call = 1e-4;
  double calls(const Ratios& ratios) const {
    double sum = 0;
    for (const double ratio : ratios) sum += call + byte * 8e6 * ratio;
    return sum;
  }
  double end(const Ratios& ratios) const {
    double now = 0;
    for (std::size_t i = 0; i < 3; ++i)
      now =
          std::max(now, 0.01 * static_cast<double>(i + 1)) + 0.001 + call + byte * 8e6 * ratios[i];
    return now;
  }
};

TEST(RatioController, EndsInTimeAndFillsGaps) {
  const CompressedStep step = three();
  RatioController controller(step, {0.002, 1e-4, 1}, payload);
  const Network network;
  EXPECT_EQ(controller.ratios(), Ratios(3, 1e-4));
  controller.measured(network.calls(controller.ratios()));
  EXPECT_EQ(controller.ratios(), Ratios(3, 1e-3));
  controller.measured(network.calls(controller.ratios()));
  const Ratios ratios = controller.ratios();
  EXPECT_NEAR(network.end(ratios), 0.032, 1e-6);
  // The last tensor has 0.9 ms of the budget, the others the 8.9 ms until the next gradients.
  EXPECT_NEAR(ratios[2], 0.9e-3 / 8e-3, 1e-4);
  EXPECT_NEAR(ratios[0], 1, 1e-6);
  EXPECT_NEAR(ratios[1], 1, 1e-6);
}

TEST(RatioController, AnswersAChangeOneStepLate) {
  const CompressedStep step = three();
  RatioController controller(step, {0.02, 1e-4, 0.5}, payload);
  Network network;
  const auto play = [&] {
    const double end = network.end(controller.ratios());
    controller.measured(network.calls(controller.ratios()));
    return end;
  };
  for (int i = 0; i < 4; ++i) play();
  EXPECT_LE(play(), 0.05 + 1e-6);
  network.byte *= 20;
  EXPECT_GT(play(), 0.055);
  for (int i = 0; i < 3; ++i) {
    const double end = play();
    EXPECT_LE(end, 0.05 + 1e-6);
    EXPECT_GT(end, 0.049);
  }
  network.byte *= 1e6;  // nothing helps
  play();
  for (const double ratio : controller.ratios()) EXPECT_NEAR(ratio, 1e-4, 1e-9);
  network.byte = 1e-15;
  play();
  for (const double ratio : controller.ratios()) EXPECT_NEAR(ratio, 0.5, 1e-9);
}

std::string job(const std::string& compression, const std::string& framework = "ddp") {
  return "schema: ghostrank/job/1\n"
         "model:\n"
         "  kind: layers\n"
         "  name: small\n"
         "  dtype: float32\n"
         "  layers:\n"
         "    - {name: a, parameters: [3000], forward_us: 10, backward_us: 20}\n"
         "    - {name: b, parameters: [5000, 1000], forward_us: 30, backward_us: 40}\n"
         "cluster: {nodes: 3, gpus_per_node: 1, nics_per_node: 1}\n"
         "parallel: {framework: " +
         framework + "}\ncompression: {" + compression + "}\n";
}

TEST(CompressedStep, KnowsWhenTensorsAreReadyAndChangesTheirPayloads) {
  const LoadedJob loaded = test::load_text(job("method: topk, ratio: 0.1, merge: tensor"));
  const Workload workload = plan_workload(loaded.spec);
  const CompressedStep step = compressed_step(loaded.spec, workload);
  ASSERT_EQ(step.calls.size(), 3u);
  std::vector<std::uint64_t> elements;
  for (const CompressedCall& call : step.calls) elements.push_back(call.elements);
  EXPECT_EQ(elements, (std::vector<std::uint64_t>{1000, 5000, 3000}));
  EXPECT_NEAR(step.computed, 100e-6, 1e-12);
  ASSERT_FALSE(step.stream.empty());
  EXPECT_NEAR(step.stream.front().seconds, 80e-6, 1e-12);
  EXPECT_EQ(payload_at(loaded.spec, step.calls[1], 0.01), 8 * 50);

  const Workload changed = with_ratios(loaded.spec, workload, step, Ratios{0.5, 0.01, 0.2});
  std::vector<std::uint64_t> bytes;
  for (const OpList& stream : changed.roles[0].iterations[changed.order[0]].streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::collective && compressed_tensor(changed, op))
        bytes.push_back(op.count * bytes_of(op.dtype));
  EXPECT_EQ(bytes, (std::vector<std::uint64_t>{8 * 500, 8 * 50, 8 * 600}));
}

TEST(CompressedStep, OfWhatNoRatioDecidesIsRefused) {
  const auto refused = [](const std::string& text) {
    return test::error_of([&] {
      const LoadedJob loaded = test::load_text(text);
      compressed_step(loaded.spec, plan_workload(loaded.spec));
    });
  };
  EXPECT_NE(refused(job("method: dgc")).find("what dgc sends does not follow from a ratio alone"),
            std::string::npos);
  EXPECT_NE(refused(job("method: none")).find("the job compresses nothing"), std::string::npos);
  EXPECT_NE(refused(job("method: topk", "horovod")).find("use parallel.framework=ddp"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
