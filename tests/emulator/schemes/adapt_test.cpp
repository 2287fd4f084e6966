// The controller of ratios on a network that is a formula, what it knows of a planned step, and
// jobs that it plays.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/step_trial.h"
#include "emulator/verify/call_content.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/layers_job.h"
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

double payload(const SentTensor& call, double ratio) {
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

// Plays steps on the network until the ratios stay.
void settle(RatioController& controller, const Network& network) {
  for (int i = 0; i < 16; ++i) controller.measured(network.calls(controller.ratios()));
}

constexpr double kRung = 1.1007;  // how many times a ratio of the ladder is the one below, at most

TEST(RatioController, EndsInTimeAndFillsGaps) {
  const CompressedStep step = three();
  RatioController controller(step, {0.002, 1e-4, 1}, payload);
  const Network network;
  EXPECT_EQ(controller.ratios(), Ratios(3, 1e-4));
  controller.measured(network.calls(controller.ratios()));
  for (const double ratio : controller.ratios()) EXPECT_NEAR(ratio, 1e-3, 1e-9);
  settle(controller, network);
  const Ratios& ratios = controller.ratios();
  EXPECT_LE(network.end(ratios), 0.032 + 1e-9);
  // The last tensor has 0.9 ms of the budget, the others the 8.9 ms until the next gradients.
  EXPECT_LE(ratios[2], 0.9e-3 / 8e-3);
  EXPECT_GT(ratios[2] * kRung, 0.9e-3 / 8e-3);
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
  settle(controller, network);
  EXPECT_LE(play(), 0.05 + 1e-6);
  network.byte *= 20;
  EXPECT_GT(play(), 0.055);
  for (int i = 0; i < 3; ++i) {
    const double end = play();
    EXPECT_LE(end, 0.05 + 1e-6);
    EXPECT_GT(end, 0.047);
  }
  network.byte *= 1e6;  // nothing helps
  play();
  for (const double ratio : controller.ratios()) EXPECT_NEAR(ratio, 1e-4, 1e-9);
  network.byte = 1e-15;
  for (int i = 0; i < 16; ++i) {
    const double before = controller.ratios()[0];
    play();
    for (const double ratio : controller.ratios()) EXPECT_LE(ratio, 2 * before + 1e-9);
  }
  for (const double ratio : controller.ratios()) EXPECT_NEAR(ratio, 0.5, 1e-9);
}

// The first step finds connections that are not yet at speed, and the second does not tell a byte
// from a call: no step then sends more than twice what the network carries in time.
TEST(RatioController, IsNotMisledByASlowBeginning) {
  const CompressedStep step = three();
  RatioController controller(step, {0.002, 1e-5, 1}, payload);
  Network network;
  network.byte = 1e-7;
  controller.measured(50 * network.calls(controller.ratios()));
  Ratios most(3);
  for (int i = 0; i < 30; ++i) {
    controller.measured(network.calls(controller.ratios()));
    for (std::size_t c = 0; c < 3; ++c) most[c] = std::max(most[c], controller.ratios()[c]);
  }
  EXPECT_LE(network.end(controller.ratios()), 0.032 + 1e-9);
  EXPECT_GT(network.end(controller.ratios()), 0.0316);
  EXPECT_LE(most[2], 2 * 0.9e-3 / 0.8);
}

std::string three_tensor_job(const std::string& compression, const std::string& framework = "ddp") {
  return test::text_of({.layers = {{"[3000]", 10, 20}, {"[5000, 1000]", 30, 40}},
                        .nodes = 3,
                        .parallel = "framework: " + framework}) +
         "compression: {" + compression + "}\n";
}

TEST(CompressedStep, KnowsWhenTensorsAreReadyAndChangesTheirPayloads) {
  const LoadedJob loaded =
      test::load_text(three_tensor_job("method: topk, ratio: 0.1, merge: tensor"));
  const Workload workload = plan_workload(loaded.spec);
  const CompressedStep step = compressed_step(loaded.spec, workload);
  ASSERT_EQ(step.calls.size(), 3u);
  std::vector<std::uint64_t> elements;
  for (const SentTensor& call : step.calls) elements.push_back(call.elements);
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

// A host stages what its ranks receive, whatever the ratio that the step was planned with.
TEST(CompressedStep, HostsStageWhatStepsSend) {
  const std::string staged = "method: topk, merge: model, gather_us: 7, gather_ns: 50, ratio: ";
  const LoadedJob loaded =
      test::load_text(three_tensor_job(staged + "0.01"), {"fabric.kind=virtual"});
  const Workload workload = plan_workload(loaded.spec);
  const CompressedStep step = compressed_step(loaded.spec, workload);
  EXPECT_NEAR(step.staged_byte, 2 * 50e-9, 1e-18);  // of two other ranks
  double staging = 0;
  for (const StreamPart& part : step.stream)
    if (std::abs(part.seconds - 7e-6) < 1e-12) staging += part.seconds;
  EXPECT_NEAR(staging, 7e-6, 1e-12);  // without what bytes add

  const std::vector<Ratios> all{{0.5}};
  const double seconds = testing::play(loaded, with_ratios(loaded.spec, workload, step, all))
                             .iterations.back()
                             .seconds;
  const LoadedJob half = test::load_text(three_tensor_job(staged + "0.5"), {"fabric.kind=virtual"});
  const Workload planned = plan_workload(half.spec);
  EXPECT_NEAR(seconds, testing::play(half, planned).iterations.back().seconds, 1e-9);
}

TEST(RatioController, LeavesTimeToStage) {
  CompressedStep step = three();
  step.staged_byte = 3e-9;
  RatioController controller(step, {0.002, 1e-4, 1}, payload);
  const Network network;
  settle(controller, network);
  Network staged = network;
  staged.byte += step.staged_byte;
  const Ratios& ratios = controller.ratios();
  EXPECT_LE(staged.end(ratios), 0.032 + 1e-9);
  EXPECT_GT(ratios[2] * kRung, 0.9e-3 / 32e-3);
  EXPECT_GT(ratios[0] * kRung, 8.9e-3 / 32e-3);
}

// Elements times bytes have more than 64 bits.
TEST(AdaptiveRatios, CountWhatHugeTensorsSend) {
  const LoadedJob loaded = test::load_text(three_tensor_job("method: topk"));
  const std::uint64_t elements = 8'000'000'000;
  EXPECT_EQ(kept_in(*loaded.spec.compression, elements, 8 * (elements / 2)), elements / 2);
  EXPECT_EQ(kept_in(*loaded.spec.compression, 3000, 8 * 7), 7u);
}

// Its pace holds back its own messages, not those of the gradients.
TEST(CompressedStep, LeavesOutBackground) {
  const auto stream_with = [](const std::string& background) {
    const LoadedJob loaded = test::load_text(
        three_tensor_job("method: topk, ratio: 0.1, merge: tensor"), {"background=" + background});
    std::vector<std::pair<StreamPart::Kind, double>> parts;
    for (const StreamPart& part : compressed_step(loaded.spec, plan_workload(loaded.spec)).stream)
      parts.emplace_back(part.kind, part.seconds);
    return parts;
  };
  EXPECT_EQ(stream_with("[{pattern: permutation, bytes: 1MiB, chunk: 64KiB, rate: 1Gbps}]"),
            stream_with("[]"));
  EXPECT_EQ(stream_with("[{pattern: incast, bytes: 1MiB, blocking: true}]"), stream_with("[]"));
}

TEST(AdaptiveRatios, OfWhatNoRatioDecidesAreRefused) {
  const auto refused = [](const std::string& compression, const std::string& framework = "ddp",
                          const std::vector<std::string>& more = {}) {
    return test::error_of([&] {
      plan_workload(
          test::load_text(three_tensor_job(compression + ", budget_ms: 1", framework), more).spec);
    });
  };
  EXPECT_NE(refused("method: dgc").find("what dgc sends does not follow from a ratio alone"),
            std::string::npos);
  EXPECT_NE(refused("method: topk", "horovod").find("use parallel.framework: ddp"),
            std::string::npos);
  EXPECT_NE(refused("method: topk, communicator: broadcast").find("broadcasts are one for each"),
            std::string::npos);
  EXPECT_NE(refused("method: topk", "ddp",
                    {"background=[{pattern: incast, bytes: 1000}, {pattern: permutation, "
                     "bytes: 1000, every: 5, over: 2}]"})
                .find("every is 5, and with compression.budget_ms all steps are alike"),
            std::string::npos);
  EXPECT_EQ(refused("method: topk", "ddp", {"background=[{pattern: incast, bytes: 1000}]"}), "");
  EXPECT_NE(refused("method: topk, least_ratio: 0.5").find("leaves no choice"), std::string::npos);
}

// Two million gradients on a network that becomes slower by nine tenths, after which a ratio is
// chosen that its steps can keep to.
TEST(AdaptiveRatios, FollowTheNetworkOfARun) {
  const test::Folder folder;
  folder.write("rates.csv", "seconds,rate\n0,10Gbps\n0.12,1Gbps\n");
  const std::string text =
      test::text_of({.layers = {{"[1000000]", 1000, 2000}, {"[1000000]", 1000, 2000}},
                     .nodes = 4,
                     .cluster = "nic: {rate: 10Gbps, rates: " + folder.path("rates.csv") + "}"}) +
      "compression: {method: randomk, merge: tensor, budget_ms: 2}\n"
      "fabric: {kind: virtual}\n"
      "run: {warmup: 1, iterations: 40}\n";
  const LoadedJob loaded = test::load_text(text);
  const Workload workload = plan_workload(loaded.spec);
  const Result result = testing::play(loaded, workload);
  ASSERT_EQ(result.iterations.size(), 40u);

  // The same steps one by one, of which the warm-up has seen the first.
  StepTrial trial(loaded, workload);
  AdaptiveSteps steps(trial);
  steps.next();
  steps.begin_again();
  const double compute = trial.step().compute;
  ASSERT_TRUE(result.compression);
  const Ratios& shares = result.compression->ratios;
  ASSERT_EQ(shares.size(), 40u);
  double now = 0;
  int late = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    const AdaptiveSteps::Step step = steps.next();
    EXPECT_NEAR(result.iterations[i].seconds, step.seconds, 1e-9 * step.seconds) << i;
    EXPECT_EQ(shares[i], share_of(loaded.spec, trial.step(), step.ratios)) << i;
    if (step.seconds > compute + 1.05 * 0.002) ++late;
    now += step.seconds;
  }
  EXPECT_GT(now, 0.2);  // both rates
  EXPECT_LE(late, 2);   // those in which the rate falls
  EXPECT_NEAR(shares[12] / shares[39], 10, 3);
  EXPECT_NEAR(result.compression->ratio_mean,
              std::accumulate(shares.begin(), shares.end(), 0.0) / 40, 1e-4);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes.back().find("ratios chosen step by step"), std::string::npos);
}

// A step never takes less than the plan says, which has the least ratio.
TEST(AdaptiveRatios, APlanSendsTheLeast) {
  const LoadedJob loaded = test::load_text(
      three_tensor_job("method: randomk, merge: model, budget_ms: 0.01, least_ratio: 0.002"),
      {"fabric.kind=virtual"});
  const Workload workload = plan_workload(loaded.spec);
  for (const OpList& stream : workload.roles[0].iterations.back().streams)
    for (const Op& op : stream)
      if (compressed_tensor(workload, op)) {
        EXPECT_EQ(op.count, 18u);  // of 9,000
      }
}

// One call a step, so that its payload follows from the step's share.
std::string one_call(const std::string& method, const std::string& more) {
  return test::text_of({.layers = {{"[20000]", 1000, 2000}},
                        .nodes = 4,
                        .cluster = "nic: {rate: 200Mbps}",
                        .parallel = "framework: ddp"}) +
         "compression: {method: " + method + ", budget_ms: 2}\n" + more;
}

// Messages, packets and memory, with rates that go on from step to step, and real data throughout.
TEST(AdaptiveRatios, SendWhatTheyChooseAndSumUpRight) {
  const test::Folder folder;
  folder.write("rates.csv", "seconds,rate\n0,200Mbps\n0.06,20Mbps\n");
  for (const char* method : {"topk", "randomk"})
    for (const char* fabric :
         {"{kind: virtual}", "{kind: virtual, network: packet, queues: {retransmit_us: 100000}}",
          "{kind: memory}"}) {
      SCOPED_TRACE(std::string(method) + " on " + fabric);
      const LoadedJob loaded =
          test::load_text(one_call(method, "fabric: " + std::string(fabric) +
                                               "\nscale: {dilation: 1}\n"
                                               "run: {warmup: 0, iterations: 30, verify: true}\n"),
                          {"cluster.nic.rates=" + folder.path("rates.csv")});
      const Result result = testing::play(loaded);
      ASSERT_EQ(result.interrupted, "");
      ASSERT_EQ(result.iterations.size(), 30u);
      EXPECT_EQ(result.verify->wrong_elements, 0u);
      EXPECT_GT(result.verify->checked_elements, 0u);
      const Ratios& shares = result.compression->ratios;
      if (loaded.spec.fabric.kind == FabricKind::virtual_time) {
        EXPECT_GT(*std::max_element(shares.begin(), shares.end()), 4 * shares.back());
      }
      const double kept =
          2e4 * std::accumulate(shares.begin(), shares.end(), 0.0) / 30;  // elements a step
      const double sent = loaded.spec.compression->method->exchange == Func::all_reduce
                              ? 2.0 * 3 / 4 * 4 * kept
                              : 3 * 8 * kept;
      ASSERT_EQ(result.nics.size(), 4u);
      // Parts of a ring are whole elements.
      for (const NicTraffic& nic : result.nics) EXPECT_NEAR(nic.tx_bytes, sent, 8);
    }
}

// With error feedback, which goes on over the steps, and with flows.
TEST(AdaptiveRatios, GoWithMemoriesAndFlows) {
  const Result kept = testing::play(test::load_text(
      one_call("topk", "fabric: {kind: virtual}\nrun: {iterations: 6, verify: true}\n"),
      {"compression.memory=residual"}));
  EXPECT_EQ(kept.verify->wrong_elements, 0u);
  const auto played = [](const char* network) {
    return testing::play(test::load_text(
        one_call("topk", "fabric: {kind: virtual, network: " + std::string(network) +
                             "}\nrun: {iterations: 10}\n")));
  };
  const Result flow = played("flow"), loggp = played("loggp");
  EXPECT_NEAR(flow.compression->ratio_mean, loggp.compression->ratio_mean,
              0.15 * loggp.compression->ratio_mean);
}

}  // namespace
}  // namespace ghostrank
