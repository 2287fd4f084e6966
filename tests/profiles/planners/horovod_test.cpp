// Horovod's fusion against results of its rule by hand, and against sums that no cut changes.
#include "profiles/planners/horovod.h"

#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

// Three layers; the gradients of the last are ready first.
Model three() {
  Model model;
  model.layers = {{"a", {{"w", 1000}}}, {"b", {{"w", 6}, {"v", 1}}}, {"c", {{"w", 10}}}};
  return model;
}

using Buffers = std::vector<std::uint64_t>;

TEST(HorovodCycles, FuseWhatIsReadyWhenACycleComes) {
  // Ready at 3.4 (c), 3.9 (b) and 5.2 ms (a).
  const std::vector<LayerTime> times{{kPicosPerMilli, 13 * kPicosPerMilli / 10},
                                     {kPicosPerMilli, kPicosPerMilli / 2},
                                     {kPicosPerMilli, 4 * kPicosPerMilli / 10}};
  const auto cycles = horovod_cycles(three(), times, 4, 1 << 20, kPicosPerMilli);
  ASSERT_EQ(cycles.size(), 2u);
  EXPECT_EQ(cycles[0].layer, 1u);
  EXPECT_EQ(cycles[0].number, 4u);
  EXPECT_EQ(cycles[0].buffers, (Buffers{12 + 4 + 8}));  // 10, 1 and 6, padded to 16 bytes
  EXPECT_EQ(cycles[1].layer, 0u);
  EXPECT_EQ(cycles[1].number, 6u);
  EXPECT_EQ(cycles[1].buffers, (Buffers{1000}));  // alone, so without padding
  // The first of longer cycles finds all; a cycle at the instant of a layer's end finds the layer.
  EXPECT_EQ(horovod_cycles(three(), times, 4, 1 << 20, 6 * kPicosPerMilli)[0].buffers,
            (Buffers{12 + 4 + 8 + 1000}));
  const HorovodCycle at_once =
      horovod_cycles(three(), times, 4, 1 << 20, 39 * kPicosPerMilli / 10)[0];
  EXPECT_EQ(at_once.number, 1u);
  EXPECT_EQ(at_once.layer, 1u);
}

TEST(HorovodCycles, CutBuffersAtTheThreshold) {
  const std::vector<LayerTime> times(3);
  const auto buffers = [&](std::uint64_t threshold) {
    return horovod_cycles(three(), times, 4, threshold, kPicosPerMilli).at(0).buffers;
  };
  EXPECT_EQ(buffers(0), (Buffers{10, 1, 6, 1000}));
  EXPECT_EQ(buffers(64), (Buffers{12 + 4, 6, 1000}));
  EXPECT_EQ(buffers(96), (Buffers{12 + 4 + 8, 1000}));
}

Workload horovod_workload(const std::string& more) {
  return plan_workload(test::load_text("model: resnet50\ndevice: v100-sxm2\n"
                                       "cluster: {nodes: 2, gpus_per_node: 4}\n"
                                       "parallel: {framework: horovod, micro_batch: 64" +
                                       more + "}\n")
                           .spec);
}

TEST(Horovod, ReducesEveryGradientOnceHoweverItIsCut) {
  for (const char* more : {"", ", fusion_mb: 0", ", fusion_mb: 4, cycle_ms: 5", ", cycle_ms: 0.01",
                           ", cycle_ms: 1000"}) {
    const Workload workload = horovod_workload(more);
    const Program& program = workload.roles[0].iterations.back();
    EXPECT_TRUE(test::streams_end(program));
    test::CallSums sums = test::sums_of(program, workload, "dp");
    EXPECT_GE(sums.bytes[Func::all_reduce], 25557032u * 4);
    EXPECT_LE(sums.bytes[Func::all_reduce], 25557032u * 4 + 161 * 12);
    test::CallSums bits = test::sums_of(program, workload, "controller");
    // Three words of 8 bytes hold 161 tensor bits and 4 status bits.
    EXPECT_EQ(bits.bytes[Func::all_reduce], bits.calls[Func::all_reduce] * 24);
    EXPECT_GE(bits.calls[Func::all_reduce], 1u);
  }
  const Workload apart = horovod_workload(", fusion_mb: 0");
  test::CallSums sums = test::sums_of(apart.roles[0].iterations[0], apart, "dp");
  EXPECT_EQ(sums.calls[Func::all_reduce], 161u);
  EXPECT_EQ(sums.bytes[Func::all_reduce], 25557032u * 4);
  const Workload together = horovod_workload(", cycle_ms: 1000");
  EXPECT_EQ(test::sums_of(together.roles[0].iterations[0], together, "dp").calls[Func::all_reduce],
            1u);
}

// Cycles: forward and backward time over the time of one, rounded up to find the last gradients.
void expect_cycles(const Workload& workload, Picoseconds cycle) {
  const Program& program = workload.roles[0].iterations.back();
  Picoseconds computed = 0;
  for (const Op& op : program.streams[0])
    if (op.kind == Op::Kind::compute && program.labels[op.label] != "optimizer")
      computed += op.duration;
  EXPECT_EQ(test::sums_of(program, workload, "controller").calls[Func::all_reduce],
            static_cast<std::uint64_t>((computed + cycle - 1) / cycle));
}

TEST(Horovod, AsksInEveryCycleWhetherAnythingIsReady) {
  for (const int cycle_us : {500, 1000, 5000, 1'000'000})
    expect_cycles(horovod_workload(", cycle_ms: " + std::to_string(cycle_us / 1e3)),
                  cycle_us * kPicosPerMicro);
}

// Around a ring of 64 ranks, 16 of whose hops leave a node, the ranks take longer than a cycle.
TEST(Horovod, BeginsNoCycleBeforeTheRanksHaveAgreed) {
  const auto with = [](const std::string& algorithm) {
    return plan_workload(test::load_text("model: resnet50\ndevice: v100-sxm2\n"
                                         "cluster: {nodes: 16, gpus_per_node: 4, "
                                         "nic: {latency_us: 100}, intra_node: {latency_us: 10}}\n"
                                         "collectives: {groups: {controller: {allreduce: " +
                                         algorithm +
                                         "}}}\n"
                                         "parallel: {framework: horovod, micro_batch: 64}\n")
                             .spec);
  };
  expect_cycles(with("ring"), 2 * 63 * (16 * 100 + 48 * 10) * kPicosPerMicro / 64);
  expect_cycles(with("recursive_doubling"), kPicosPerMilli);
}

TEST(Horovod, RefusesMoreCyclesThanAreWorthPlaying) {
  const std::string error = test::error_of([] {
    plan_workload(test::load_text("model: gpt3-13b\ndevice: {base: v100-sxm2, memory_bytes: 0}\n"
                                  "parallel: {framework: horovod, cycle_ms: 0.001}\n")
                      .spec);
  });
  EXPECT_NE(error.find("at most 1000000 are played; use a larger parallel.cycle_ms"),
            std::string::npos)
      << error;
}

TEST(Horovod, RefusesMoreTensorsThanItsCacheHolds) {
  EXPECT_NE(test::error_of([] {
              plan_workload(test::load_text("model: llama3.1-405b\ndevice: h100-sxm\n"
                                            "parallel: {framework: horovod}\n")
                                .spec);
            }).find("has 1137 tensors and Horovod's cache holds 1024 responses"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
