// What ranks carry from step to step through the engine: memories of compression and weights that
// they learn, with real payloads on every fabric.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/traffic/tensor_use.h"
#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "profiles/training/gradient_state.h"
#include "tests/emulator/play.h"
#include "tests/layers_job.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using testing::play;

// Eight ranks, whose 200 gradients are one tensor, or three.
std::string learning_job(const std::string& more, const std::string& parameters = "[200]") {
  return test::text_of({.layers = {{parameters}}, .nodes = 4, .gpus_per_node = 2}) +
         "run: {iterations: 60, warmup: 0, verify: true}\n" + more;
}

Result trained(const std::string& compression, const std::vector<std::string>& overrides = {}) {
  const Result result = play(test::load_text(
      learning_job("training: {task: logistic}\nfabric: {kind: virtual}\n" + compression),
      overrides));
  EXPECT_EQ(result.interrupted, "");
  EXPECT_GT(result.verify->checked_elements, 0u);
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  EXPECT_TRUE(result.training.has_value());
  return result;
}

std::vector<double> losses(const std::string& compression,
                           const std::vector<std::string>& overrides = {}) {
  return trained(compression, overrides).training->loss;
}

// The gradient is the derivative of the loss: by differences, rank by rank.
TEST(LogisticTask, HasTheGradientOfItsLoss) {
  const LogisticTask task(3, 5, 12, 9);
  std::vector<float> weights(12);
  for (std::size_t i = 0; i < 12; ++i) weights[i] = 0.1f * static_cast<float>(i) - 0.5f;
  std::vector<double> mean(12);
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<float> own = task.gradient(rank, weights);
    for (std::size_t i = 0; i < 12; ++i) mean[i] += static_cast<double>(own[i]) / 3;
  }
  for (std::size_t i = 0; i < 12; ++i) {
    constexpr float kStep = 1.0f / 64;
    std::vector<float> up = weights, down = weights;
    up[i] += kStep;
    down[i] -= kStep;
    EXPECT_NEAR(mean[i], (task.loss(up) - task.loss(down)) / (2 * static_cast<double>(kStep)),
                1e-4);
  }
  EXPECT_NE(task.gradient(0, weights), task.gradient(1, weights));
}

// As many steps as plain gradients need, and half as many more; a method of each kind. All of them
// are in tests/fidelity/published/learning.py.
TEST(Learning, WithErrorFeedbackReachesTheLossOfNone) {
  const double goal = losses("").at(39);
  EXPECT_LT(goal, 0.75 * losses("").at(0));
  const auto reached = [&](const std::string& compression) {
    const std::vector<double> loss = losses("compression: {ratio: 0.05, " + compression + "}\n");
    EXPECT_EQ(loss.size(), 60u);
    return *std::min_element(loss.begin(), loss.end()) <= goal;
  };
  for (const char* with :
       {"method: fp16", "method: qsgd", "method: topk, memory: residual",
        "method: sidco-e, memory: residual", "method: onebit, memory: residual",
        "method: efsignsgd, memory: efsignsgd", "method: powersgd, memory: powersgd"})
    EXPECT_TRUE(reached(with)) << with;
  for (const char* without : {"method: topk", "method: sidco-e", "method: powersgd"})
    EXPECT_FALSE(reached(without)) << without;
}

// What the engine's ranks learn is what the mathematics says, to the last bit: gathered payloads
// are added up in the order of ranks.
TEST(Learning, ThroughTheEngineIsThatOfTheMathematics) {
  const LoadedJob loaded = test::load_text(
      learning_job("training: {task: logistic}\nfabric: {kind: virtual}\n"
                   "compression: {method: topk, ratio: 0.05, memory: residual, merge: tensor}\n"));
  const LogisticTask task(8, 32, 200, loaded.spec.run.seed);
  std::vector<GradientState> states;
  for (int r = 0; r < 8; ++r) states.emplace_back(loaded.spec, 200, &task, r);
  std::vector<double> expected;
  for (std::uint32_t step = 0; step < 60; ++step) {
    const std::vector<CompressionOptions> options(8, loaded.spec.compression->options);
    std::vector<std::vector<float>> tensors(8, std::vector<float>(200));
    for (std::size_t r = 0; r < 8; ++r) {
      states[r].begin(step);
      states[r].compensate({0, 200}, tensors[r]);
    }
    const Compressor& topk = *loaded.spec.compression->method;
    const std::vector<float> sum = exchanged(topk, tensors, options);
    for (std::size_t r = 0; r < 8; ++r) {
      const std::vector<float> own =
          exchanged(topk, std::vector<std::vector<float>>{tensors[r]}, {&options[r], 1});
      states[r].finish({0, 200}, tensors[r], own, sum, 8, false);
    }
    expected.push_back(task.loss(states[0].weights()));
  }
  EXPECT_EQ(play(loaded).training->loss, expected);
}

// Memory plays second warm-ups at another dilation; several engine threads share the exchanges.
TEST(Learning, IsTheSameOnEveryFabricWithEveryNumberOfThreads) {
  const char* kTopk = "compression: {method: topk, ratio: 0.05, memory: residual}\n";
  const std::vector<std::string> kShort{"run.iterations=3", "run.warmup=2"};
  const auto in_memory = [&](const char* compression, const char* dilation, const char* shards) {
    std::vector<std::string> memory = kShort;
    memory.insert(memory.end(),
                  {"fabric.kind=memory", std::string("scale.dilation=") + dilation, shards});
    return losses(compression, memory);
  };
  EXPECT_EQ(losses(kTopk, kShort).size(), 5u);
  EXPECT_EQ(in_memory(kTopk, "auto", "run.shards=1"), losses(kTopk, kShort));
  for (const char* compression :
       {kTopk, "compression: {method: dgc, ratio: 0.05, memory: dgc, merge: tensor}\n",
        "compression: {method: threshold, threshold: 0.01, memory: residual}\n"})
    for (const char* shards : {"run.shards=1", "run.shards=2"})
      EXPECT_EQ(in_memory(compression, "2", shards), losses(compression, kShort))
          << compression << shards;
}

// DDP reduces all gradients in its first iteration in one call, and later in buckets: the memories
// must follow.
TEST(Memories, FollowGradientsIntoOtherBuckets) {
  for (const char* method : {"topk, memory: residual", "sidco-e, memory: residual",
                             "dgc, memory: dgc", "powersgd, memory: powersgd"})
    for (const char* kind : {"memory", "virtual"}) {
      const Result result = play(test::load_text(
          learning_job(std::string("fabric: {kind: ") + kind + "}\nscale: {dilation: " +
                           (std::string(kind) == "memory" ? "2" : "auto") +
                           "}\ncompression: {ratio: 0.05, method: " + method + "}\n",
                       "[3000, 20, 5000]"),
          {"parallel.first_bucket_mb=0.01", "parallel.bucket_cap_mb=0.01", "run.iterations=3",
           "run.warmup=1"}));
      EXPECT_EQ(result.interrupted, "") << method;
      EXPECT_EQ(result.verify->wrong_elements, 0u) << method;
      EXPECT_FALSE(result.training.has_value());
    }
}

// Libraries that send no message for an empty payload wait for no rank that has one. With a
// threshold of 0.03 some ranks send something in some steps, with 100 none does in any.
TEST(Memories, OfRanksThatSendNothingGoOn) {
  for (const char* threshold : {"0.03", "100"}) {
    std::vector<double> expected;
    for (const char* library : {"generic", "gloo", "openmpi-4.1", "nccl-2.28", "nccl-2.30"})
      for (const char* communicator : {"auto", "broadcast"}) {
        SCOPED_TRACE(std::string(threshold) + " " + library + " " + communicator);
        const std::vector<double> loss = losses(
            std::string("collectives: {library: ") + library +
                "}\ncompression: {method: threshold, memory: residual, threshold: " + threshold +
                ", communicator: " + communicator + "}\n",
            {"run.iterations=6"});
        if (expected.empty()) expected = loss;
        EXPECT_EQ(loss, expected);
      }
    EXPECT_EQ(expected.back() == expected.front(), threshold == std::string("100"));
  }
}

// Payloads whose size the data decide grow as more is kept.
TEST(Memories, ChangeWhatIsSentFromStepToStep) {
  const auto ratios = [](const std::string& memory) {
    const LoadedJob loaded = test::load_text(
        learning_job(
            "compression: {method: threshold, threshold: 0.004, merge: tensor" + memory + "}\n",
            "[200000]"),
        {"run.verify=false", "run.iterations=8"});
    const Workload workload = plan_workload(loaded.spec);
    std::vector<double> found;
    for (std::uint32_t i = 0; i < 8; ++i)
      found.push_back(compression_use(loaded.spec, workload, i)->ratio_mean);
    return found;
  };
  const std::vector<double> none = ratios(""), kept = ratios(", memory: residual");
  EXPECT_EQ(none.front(), none.back());
  EXPECT_NEAR(kept.front(), none.front(), 0.1 * none.front());
  EXPECT_GT(kept.back(), 1.5 * kept.front());
}

TEST(Memories, CostPassesOverTheTensor) {
  const auto step = [](const std::string& memory) {
    return play(test::load_text(
                    learning_job(
                        "fabric: {kind: virtual}\ncompression: {method: topk, merge: tensor" +
                        memory + "}\n"),
                    {"run.iterations=1", "run.verify=false"}))
        .iterations.back()
        .seconds;
  };
  const double passes = 4 / 900.0 * 200;  // ns
  EXPECT_NEAR(step(", memory: residual") - step(""), 1e-9 * (7 * passes + 3 * 5000), 1e-11);
  EXPECT_NEAR(step(", memory: dgc") - step(""), 1e-9 * (11 * passes + 4 * 5000), 1e-11);
}

std::string refused_learning(const std::string& more,
                             const std::vector<std::string>& overrides = {}) {
  const std::string error =
      test::error_of([&] { plan_workload(test::load_text(learning_job(more), overrides).spec); });
  return error.empty() ? error : error.substr(error.find("job.yaml"));
}

TEST(Memories, ThatDoNotComposeAreRefusedWithWhatDoes) {
  EXPECT_EQ(refused_learning("compression: {method: qsgd, memory: dgc}\n"),
            "job.yaml:11:37: compression.memory dgc: it forgets what was sent in full, and qsgd "
            "sends no element as it is; use a method that sends values, as dgc, topk or "
            "threshold, or memory residual");
  EXPECT_EQ(
      refused_learning("compression: {method: topk, memory: residual}\nfabric: {kind: ofi}\n"),
      "job.yaml:11:37: in verified runs ranks compare what they received with what others "
      "kept, which other processes do not know; use fabric.kind=memory or virtual, or "
      "run.verify=false");
  EXPECT_NE(
      test::error_of([] {
        plan_workload(test::load_text(learning_job("compression: {method: dgc, memory: dgc}\n"),
                                      {"run.min_seconds=1"})
                          .spec);
      }).find("payloads of dgc change their sizes from step to step"),
      std::string::npos);
}

TEST(Learning, IsRefusedWhereNothingCanBeLearned) {
  const std::string learn = "training: {task: logistic}\n";
  EXPECT_EQ(refused_learning(learn, {"run.verify=false"}),
            "job.yaml:11:18: training.task: only ranks with real data can learn; add "
            "run.verify=true");
  EXPECT_NE(
      refused_learning(learn, {"parallel.framework=zero2"}).find("does not reduce whole gradients"),
      std::string::npos);
  EXPECT_NE(
      refused_learning(learn, {"precision.gradients=bf16"}).find("use precision.gradients=fp32"),
      std::string::npos);
  EXPECT_NE(refused_learning(learn, {"training.samples=1000000"}).find("take more than 1 GiB"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
