// Communication scheduled under compute, as the engine plays it: step times against closed forms,
// and random models whose sums are right and whose bytes are the same on every fabric.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "emulator/engine.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/emulator/support.h"
#include "tests/layers_job.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

Result play(const std::string& text, const std::vector<std::string>& set = {}) {
  return testing::play(test::load_text(text, set));
}

using Layers = std::vector<test::LayersJob::Layer>;

// Four single-GPU nodes, 10 Gb/s without latency.
std::string job_of(const Layers& layers, const std::string& parallel) {
  return test::text_of({.layers = layers,
                        .nodes = 4,
                        .cluster = "nic: {rate: 10Gbps, latency_us: 0}, "
                                   "intra_node: {rate: unlimited, latency_us: 0}",
                        .parallel = parallel}) +
         "fabric: {kind: virtual}\nrun: {warmup: 2, iterations: 3}\n";
}

// A layer of 1,000,000 elements: a call of all of it takes 2 x 3/4 x 4 MB / 1.25 GB/s = 4.8 ms.
std::string one_layer(double forward_ms, double backward_ms, const std::string& parallel) {
  return job_of({{"[1000000]", forward_ms * 1e3, backward_ms * 1e3}}, parallel);
}

// One step in the middle: the first inherits nothing, the last waits for all of its own.
double middle_step(const std::string& text) { return play(text).iterations.at(1).seconds; }

TEST(Schedulers, OfOneLayerHideNothing) {
  for (const char* parallel : {"framework: wfbp", "framework: mgwfbp", "framework: dear"})
    EXPECT_NEAR(middle_step(one_layer(3, 6, parallel)), 13.8e-3, 1e-7) << parallel;
}

// Gathers, and all-reduces whose sums the forward needs, go on while a step gets its data.
TEST(Schedulers, TheTimeBeforeTheForwardHidesWhatItWaitsFor) {
  for (const char* parallel : {"framework: dear", "framework: bytescheduler"}) {
    std::string text = one_layer(3, 6, parallel);
    text.insert(text.find("  layers:"), "  before_us: 2400\n");
    EXPECT_NEAR(middle_step(text), 13.8e-3, 1e-7) << parallel;
  }
}

// A job of nothing but communication: a reduce-scatter waits for the gather of the step before.
// Both take three latencies, and 0.8 us for each of their messages.
TEST(Schedulers, WithoutComputeWaitForTheStepBefore) {
  const std::string text = test::text_of({.layers = {{"[1000]", 0, 0}},
                                          .nodes = 4,
                                          .cluster = "nic: {rate: 10Gbps, latency_us: 200}",
                                          .parallel = "framework: dear"});
  EXPECT_NEAR(middle_step(text + "fabric: {kind: virtual}\n"), 2 * 3 * 200.8e-6, 1e-7);
}

// Ranks look every 0.1 ms for gradients, and agree on what they see in 1.2 ms around a ring, or in
// 0.4 ms in two exchanges.
TEST(Schedulers, HorovodWaitsForACycleAndForTheRanksToAgree) {
  const std::string text = test::text_of({.layers = {{"[1000000]", 5000, 5000}},
                                          .nodes = 4,
                                          .cluster = "nic: {rate: 10Gbps, latency_us: 200}",
                                          .parallel = "framework: horovod, cycle_ms: 0.1"}) +
                           "fabric: {kind: virtual}\n";
  const double call = 1.2e-3 + 4.8e-3;
  // Around the ring, cycles are 1.2 ms apart: the ninth finds the gradients.
  EXPECT_NEAR(middle_step(text), 9 * 1.2e-3 + 1.2e-3 + call, 20e-6);
  // Cycles that find nothing hold up none of them.
  EXPECT_NEAR(
      middle_step(text + "collectives: {groups: {controller: {allreduce: recursive_doubling}}}\n"),
      10e-3 + 0.4e-3 + call, 20e-6);
}

// Two equal layers: the second half of one layer's gather goes under the other's forward.
TEST(Schedulers, DearHidesTheGatherUnderTheForward) {
  const auto two = [](const std::string& parallel) {
    return job_of(Layers(2, {"[1000000]", 5000, 5000}), parallel);
  };
  // Compute takes 20 ms. One call of 4.8 ms is left after the backward, of the front layer.
  EXPECT_NEAR(middle_step(two("framework: wfbp")), 24.8e-3, 1e-7);
  // Both halves of 2.4 ms of the front layer are left: its scatter, and its gather before the
  // forward, which leaves room for that of the other layer.
  EXPECT_NEAR(middle_step(two("framework: dear, fusion: none")), 24.8e-3, 1e-6);
  // Fused: nothing overlaps, neither under the backward nor under the forward.
  EXPECT_NEAR(middle_step(two("framework: dear")), 29.6e-3, 1e-6);
}

// Where communication takes longer than the backward, the forward hides what WFBP exposes.
TEST(Schedulers, DearNeedsTheLongerOfEachHalf) {
  const auto many = [](const std::string& parallel) {
    return job_of(Layers(20, {"[100000]", 240, 240}), parallel);
  };
  // A layer's call takes 480 us, its halves 240 us each, as do its forward and its backward.
  EXPECT_NEAR(middle_step(many("framework: wfbp")), (20 + 1 + 2 * 20) * 240e-6, 1e-6);
  // Each half lies under its pass, but for one layer's.
  EXPECT_NEAR(middle_step(many("framework: dear, fusion: none")), (20 + 1 + 20 + 1) * 240e-6, 2e-6);
  // In the backward's order the first layer's call is the last: priorities bring it forward, and
  // the forward hides the rest.
  const double byte = middle_step(many("framework: bytescheduler, credit_bytes: 400000"));
  EXPECT_LT(byte, (20 + 1 + 2 * 20) * 240e-6 - 4e-3);
  EXPECT_GT(byte, 40 * 240e-6);
}

// Horovod's cycles are a timer's: run.jitter varies the computes that they find, not when they
// come.
TEST(Schedulers, CyclesAreTheSameWhateverComputesTake) {
  const std::string text = one_layer(1, 2, "framework: horovod, cycle_ms: 20");
  const Result even = play(text), uneven = play(text, {"run.jitter=0.3"});
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(uneven.iterations[i].seconds, even.iterations[i].seconds, 1e-9) << i;
  for (const char* parallel :
       {"framework: horovod", "framework: bytescheduler, launch: after_backward",
        "framework: kfac, kfac_cost: rtx2080ti"}) {
    const Workload workload = plan_workload(
        test::load_text(
            "model: cifar-resnet20\ndevice: rtx2080ti\ncluster: {nodes: 2, gpus_per_node: 1}\n"
            "parallel: {" +
            std::string(parallel) + "}\n")
            .spec);
    int cycles = 0;
    const Program& program = workload.roles[0].iterations.back();
    for (const OpList& stream : program.streams)
      for (const Op& op : stream) {
        if (op.kind != Op::Kind::compute || program.labels[op.label] != "cycle") continue;
        EXPECT_TRUE(op.pace) << parallel;
        ++cycles;
      }
    EXPECT_GT(cycles, 0) << parallel;
  }
}

// What one step hands to the next is measured in all of a job's steps, not in all but the first.
TEST(Schedulers, TakeAsLongBesideOtherJobsThatShareNothing) {
  for (const char* framework : {"dear", "bytescheduler"}) {
    const std::string
        layers =
            "model: {kind: layers, layers: [{parameters: [1000000], forward_us: 3000, backward_us: "
            "6000}, {parameters: [1000000], forward_us: 3000, backward_us: 6000}]}",
        parallel = ", parallel: {framework: " + std::string(framework) + "}}";
    const Result result =
        play("jobs:\n- {name: a, nodes: 0-3, file: {" + layers + parallel +
             "}\n- {name: b, nodes: 4-5, file: {" + layers + parallel +
             "}\ncluster: {nodes: 6, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 10Gbps, "
             "latency_us: 0}}\nfabric: {kind: virtual}\nrun: {warmup: 1, iterations: 3}\n");
    const double alone = middle_step(
        job_of(Layers(2, {"[1000000]", 3000, 6000}), "framework: " + std::string(framework)));
    const JobReport& four = result.jobs.at(0);
    ASSERT_GE(four.iterations.size(), 3u) << framework;
    for (const auto& iterations : {four.iterations, four.alone})
      for (const IterationReport& one : iterations)
        EXPECT_NEAR(one.seconds, alone, 1e-6) << framework;
  }
}

std::string random_text(std::mt19937& random, const std::string& fabric, int dilation,
                        const std::string& parallel) {
  std::ostringstream out;
  out << "model: {kind: layers, layers: [";
  const int layers = 1 + static_cast<int>(random() % 6);
  for (int i = 0; i < layers; ++i) {
    out << (i > 0 ? ", " : "") << "{name: l" << i << ", forward_us: " << random() % 300
        << ", backward_us: " << random() % 600 << ", parameters: [";
    for (unsigned t = i == 0 ? 1 : static_cast<unsigned>(random() % 4); t > 0; --t)
      out << 1 + random() % 3000 << (t > 1 ? ", " : "");
    out << "]}";
  }
  out << "], optimizer_us: " << random() % 50 << "}\n";
  out << "cluster: {nodes: " << 1 + random() % 3 << ", gpus_per_node: " << 1 + random() % 3
      << ", nics_per_node: 1, nic: {rate: 10Gbps}}\n"
      << "fabric: {kind: " << fabric << "}\nrun: {warmup: 1, iterations: 3, verify: true}\n";
  if (dilation > 0) out << "scale: {dilation: " << dilation << "}\n";
  out << "parallel: {" << parallel << "}\n";
  return out.str();
}

TEST(Schedulers, ReduceRandomModelsRightAndAlikeOnEveryFabric) {
  const char* const plans[] = {"framework: dear, threshold_mb: 0.01",
                               "framework: dear, fusion: none",
                               "framework: dear, fusion: layers, nearby_layers: 2",
                               "framework: dear, fusion: waiting_time, wait_ms: 0.4",
                               "framework: dear, decouple: reduce, threshold_mb: 0.01",
                               "framework: wfbp",
                               "framework: mgwfbp",
                               "framework: bytescheduler, partition_bytes: 4096",
                               "framework: bytescheduler, partition_bytes: 4096, credit_bytes: 0",
                               "framework: bytescheduler, launch: after_backward, cycle_ms: 0.1"};
  for (unsigned seed = 0; seed < 3; ++seed)
    for (const char* plan : plans) {
      SCOPED_TRACE(std::string(plan) + ", seed " + std::to_string(seed));
      std::mt19937 one(seed), other(seed);
      const Result modelled = play(random_text(one, "virtual", 0, plan));
      const Result played = play(random_text(other, "memory", 20, plan));
      for (const Result* result : {&modelled, &played}) {
        EXPECT_EQ(result->interrupted, "");
        EXPECT_EQ(result->verify->wrong_elements, 0u);
      }
      if (modelled.ranks > 1) {
        EXPECT_GT(modelled.verify->checked_elements, 0u);
      }
      EXPECT_EQ(testing::ledger_text(modelled), testing::ledger_text(played));
    }
}

// The shipped job of BERT-large with DeAR, on two nodes, as `run --trace` shows a rank of it: calls
// of the groups lie under the pass that hides them.
TEST(Schedulers, TheTraceOfDearHasScattersUnderTheBackwardAndGathersUnderTheForward) {
  const LoadedJob loaded = load_job("bert-large-dear", {"cluster.nodes=2", "run.iterations=3"});
  const auto control = Control::meet(World{});
  Observer nobody;
  RunOptions options;
  options.trace_ranks = {WorldRank(5)};
  const Result result = run_job(loaded, plan_workload(loaded.spec), *control, options, nobody);
  struct Pass {
    Picoseconds start = std::numeric_limits<Picoseconds>::max(), end = 0;
    void add(const Span& span) {
      start = std::min(start, span.start);
      end = std::max(end, span.start + span.duration);
    }
    bool holds(const Span& span) const { return span.start >= start && span.start < end; }
  };
  // The middle step, which begins with parameters that the one before sent.
  const auto seconds = [&](std::size_t i) { return result.iterations[i].seconds; };
  const auto picos = [](double s) { return static_cast<Picoseconds>(s * 1e12); };
  const Picoseconds first = picos(seconds(0)), end = first + picos(seconds(1));
  Pass forward, backward;
  std::vector<Span> scatters, gathers;
  for (const Span& span : result.spans) {
    if (span.start < first || span.start >= end) continue;
    // A module's parameters are stepped in front of its forward; embeddings take no time in it.
    if (span.label.starts_with("forward") || span.label.starts_with("step")) forward.add(span);
    if (span.label.starts_with("backward")) backward.add(span);
    if (span.label.starts_with("reduce-scatter")) scatters.push_back(span);
    if (span.label.starts_with("all-gather") && span.label != "all-gather 0")
      gathers.push_back(span);
  }
  ASSERT_EQ(scatters.size(), 50u);  // DeAR's groups of this model
  ASSERT_EQ(gathers.size(), 49u);
  EXPECT_LE(forward.end, backward.start);
  for (const Span& span : gathers) EXPECT_TRUE(forward.holds(span)) << span.label;
  // On this network scatters take longer than the backward: it holds the start of the first ones.
  std::size_t under = 0;
  for (const Span& span : scatters) {
    EXPECT_GE(span.start, backward.start) << span.label;
    under += backward.holds(span) ? 1 : 0;
  }
  EXPECT_GE(under, 10u);
}

// A VGG of one convolution, whose eight factors have the dimensions below; four nodes, 10 Gb/s
// without latency.
constexpr int kDimensions[] = {28, 1, 50, 4096, 4097, 4096, 4097, 1};

double kfac_step(const std::string& parallel) {
  return middle_step(
      "model: {kind: convolutional, architecture: vgg, convolutions: [1], image: 32, classes: 1}\n"
      "device: {name: d, peak_tflops: {fp32: 1}, efficiency: 0.5, memory_GBps: 1000}\n"
      "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 10Gbps, latency_us: "
      "0}, intra_node: {rate: unlimited, latency_us: 0}}\nfabric: {kind: virtual}\n"
      "run: {warmup: 1, iterations: 3}\nparallel: {framework: kfac, kfac_cost: spdkfac, " +
      parallel + "}\n");
}

// Every part adds to the step, and sharing inverses among ranks shortens it.
TEST(Kfac, AddsItsPartsAndSharesThem) {
  const double sgd = kfac_step("variant: ssgd");
  const double factors = kfac_step("variant: mpd, exclude: factor_comm");
  const double reduced = kfac_step("variant: mpd, exclude: inverses");
  const double inverted = kfac_step("variant: mpd, exclude: inverse_comm");
  const double all = kfac_step("variant: mpd");
  EXPECT_LT(sgd, factors);
  EXPECT_LT(factors, reduced);
  EXPECT_LT(reduced, inverted);
  EXPECT_LT(inverted, all);
  // Without placement every rank inverts all factors, one after the other.
  const double everywhere = kfac_step("variant: d");
  EXPECT_GT(everywhere, inverted);
  double inverses = 0;
  for (const int d : kDimensions) inverses += 3.64e-3 * std::exp(4.77e-4 * d);
  EXPECT_NEAR(everywhere - reduced, inverses, 1e-7);
}

}  // namespace
}  // namespace ghostrank
