// The controller of ratios on a network that is a formula, what it knows of a planned step, and
// jobs that it plays.
#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/adapt/adapted.h"
#include "emulator/engine.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"

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
  const CompressedStep step = compressed_step(workload);
  ASSERT_EQ(step.calls.size(), 3u);
  std::vector<std::uint64_t> elements;
  for (const CompressedCall& call : step.calls) elements.push_back(call.elements);
  EXPECT_EQ(elements, (std::vector<std::uint64_t>{1000, 5000, 3000}));
  EXPECT_NEAR(step.computed, 100e-6, 1e-12);
  ASSERT_FALSE(step.stream.empty());
  EXPECT_NEAR(step.stream.front().seconds, 80e-6, 1e-12);
  EXPECT_EQ(payload_at(loaded.spec, step.calls[1], 0.01), 8 * 50);

  const std::vector<Ratios> by_step{{0.5, 0.01, 0.2}, {0.1, 0.1, 0.1}};
  const Workload changed = with_ratios(loaded.spec, workload, step, by_step);
  ASSERT_EQ(changed.roles[0].iterations.size(), 2u);
  std::vector<std::uint64_t> bytes;
  for (const OpList& stream : changed.roles[0].iterations[0].streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::collective && compressed_tensor(changed, op))
        bytes.push_back(op.count * bytes_of(op.dtype));
  EXPECT_EQ(bytes, (std::vector<std::uint64_t>{8 * 500, 8 * 50, 8 * 600}));
}

TEST(AdaptiveRatios, OfWhatNoRatioDecidesAreRefused) {
  const auto refused = [](const std::string& compression, const std::string& framework = "ddp",
                          const std::vector<std::string>& more = {}) {
    return test::error_of([&] {
      plan_workload(test::load_text(job(compression + ", budget_ms: 1", framework), more).spec);
    });
  };
  EXPECT_NE(refused("method: dgc").find("what dgc sends does not follow from a ratio alone"),
            std::string::npos);
  EXPECT_NE(refused("method: topk", "horovod").find("use parallel.framework: ddp"),
            std::string::npos);
  EXPECT_NE(refused("method: topk, communicator: broadcast").find("broadcasts are one for each"),
            std::string::npos);
  EXPECT_NE(refused("method: topk, least_ratio: 0.5").find("leaves no choice"), std::string::npos);
  EXPECT_NE(refused("method: topk", "ddp", {"run.verify=true"}).find("payloads of one ratio"),
            std::string::npos);
}

// Two million gradients on a network that becomes slower by nine tenths, after which a ratio is
// chosen that its steps can keep to.
TEST(AdaptiveRatios, FollowTheNetworkOfARun) {
  const test::Folder folder;
  folder.write("rates.csv", "seconds,rate\n0,10Gbps\n0.1,1Gbps\n");
  const std::string text =
      "schema: ghostrank/job/1\n"
      "model:\n"
      "  kind: layers\n"
      "  name: two\n"
      "  dtype: float32\n"
      "  layers:\n"
      "    - {name: a, parameters: [1000000], forward_us: 1000, backward_us: 2000}\n"
      "    - {name: b, parameters: [1000000], forward_us: 1000, backward_us: 2000}\n"
      "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 10Gbps, rates: " +
      folder.path("rates.csv") +
      "}}\n"
      "compression: {method: randomk, merge: tensor, budget_ms: 2}\n"
      "fabric: {kind: virtual}\n"
      "run: {warmup: 1, iterations: 40}\n";
  const LoadedJob loaded = test::load_text(text);
  const Workload workload = plan_workload(loaded.spec);
  const std::unique_ptr<Control> control = Control::meet(World{});
  Observer nobody;
  const Result result = run_job(loaded, workload, *control, {}, nobody);
  control->close();
  ASSERT_EQ(result.iterations.size(), 40u);

  StepTrial trial(loaded, workload);
  AdaptiveSteps steps(trial);
  steps.next();
  steps.begin_again();
  const double compute = trial.step().compute;
  double now = 0, fast = 0, slow = 0;
  int late = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    const AdaptiveSteps::Step step = steps.next();
    EXPECT_NEAR(result.iterations[i].seconds, step.seconds, 0.01 * step.seconds) << i;
    if (step.seconds > compute + 1.05 * 0.002) ++late;
    if (i == 5) fast = share_of(trial.step(), step.ratios);
    if (i == 39) slow = share_of(trial.step(), step.ratios);
    now += step.seconds;
  }
  EXPECT_GT(now, 0.2);  // both rates
  EXPECT_LE(late, 2);   // those in which the rate falls
  EXPECT_NEAR(fast / slow, 10, 3);
  ASSERT_TRUE(result.compression);
  EXPECT_GT(result.compression->ratio_mean, slow);
  EXPECT_LT(result.compression->ratio_mean, fast);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes.back().find("ratios chosen step by step"), std::string::npos);
}

}  // namespace
}  // namespace ghostrank
