// The planners that schedule communication under compute: modules and groups against the figures of
// their authors' code, merge and priority rules by hand, programs op by op and in sums.
#include <cmath>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "profiles/planners/schedulers/bytescheduler.h"
#include "profiles/planners/schedulers/fusion.h"
#include "profiles/planners/schedulers/modules.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

constexpr double kMebibyte = 1 << 20;

std::vector<Module> modules(const std::string& model) {
  const LoadedJob job = test::load_text("model: " + model +
                                        "\ndevice: rtx2080ti\n"
                                        "cluster: {nodes: 1, gpus_per_node: 1}\n");
  return modules_of(*job.spec.model, step_times(job.spec));
}

TEST(Modules, AreThoseOfPyTorch) {
  const auto expect = [](const char* name, std::size_t count, std::size_t tensors,
                         std::uint64_t parameters) {
    std::size_t found = 0;
    std::uint64_t numel = 0;
    for (const Module& module : modules(name)) {
      found += module.tensors.size();
      numel += module.numel;
    }
    EXPECT_EQ(modules(name).size(), count) << name;
    EXPECT_EQ(found, tensors) << name;
    EXPECT_EQ(numel, parameters) << name;
  };
  expect("resnet50", 107, 161, 25'557'032);
  expect("vgg16", 16, 32, 138'357'544);
  expect("bert-base", 105, 206, 110'106'428);
  expect("bert-large", 201, 398, 336'226'108);
}

TEST(Modules, ShareTheTimeOfTheirLayer) {
  const LoadedJob job = test::load_text("model: bert-base\ndevice: rtx2080ti\n");
  const StepTimes times = step_times(job.spec);
  Picoseconds forward = 0, backward = 0, optimizer = 0, sum_forward = 0, sum_backward = 0;
  for (const LayerTime& layer : times.layers) {
    forward += layer.forward;
    backward += layer.backward;
  }
  for (const Module& module : modules_of(*job.spec.model, times)) {
    EXPECT_GE(module.forward, 0);
    sum_forward += module.forward;
    sum_backward += module.backward;
    optimizer += module.optimizer;
  }
  EXPECT_EQ(sum_forward, forward);
  EXPECT_EQ(sum_backward, backward);
  EXPECT_NEAR(static_cast<double>(optimizer), static_cast<double>(times.optimizer), 2.0);
}

TEST(Modules, OfMeasuredLayersAreTheLayers) {
  const Model model = test::model_from(
      "kind: layers\nlayers: [{name: a, parameters: [3, 4], forward_us: 1, backward_us: 2},\n"
      "  {name: b, forward_us: 5, backward_us: 6}]\noptimizer_us: 7\n");
  StepTimes times{{{1, 2}, {5, 6}}, 7};
  const std::vector<Module> found = modules_of(model, times);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "a");
  EXPECT_EQ(found[0].tensors, (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(found[0].optimizer, 7);
  EXPECT_EQ(found[1].numel, 0u);
  EXPECT_EQ(found[1].forward, 5);
}

std::vector<double> mebibytes_of(const std::vector<FusedGroup>& groups) {
  std::vector<double> out;
  for (const FusedGroup& group : groups)
    out.push_back(std::round(static_cast<double>(group.numel) * 4 / kMebibyte * 100) / 100);
  return out;
}

// Sizes that the rule of DeAR's code gives, in MiB.
TEST(Fusion, BySizeGivesTheGroupsOfDeAR) {
  const auto sizes = [](const char* model) {
    return mebibytes_of(fuse_by_size(modules(model), 4, 25 * kMebibyte));
  };
  EXPECT_EQ(sizes("resnet50"), (std::vector<double>{24.07, 23.55, 21.02, 21.04, 7.82}));
  EXPECT_EQ(sizes("vgg16"), (std::vector<double>{20.12, 18, 18, 392.02, 64.02, 15.63}));
  const std::vector<double> base = sizes("bert-base"), large = sizes("bert-large");
  ASSERT_EQ(base.size(), 16u);
  EXPECT_EQ(base.front(), 89.42);
  EXPECT_EQ(base.back(), 22.65);
  ASSERT_EQ(large.size(), 50u);
  EXPECT_EQ(large.front(), 119.23);
}

Module module_of(std::uint64_t numel, Picoseconds backward = kPicosPerMilli) {
  Module out;
  out.name = "m";
  if (numel > 0) out.tensors = {numel};
  out.numel = numel;
  out.forward = out.backward = backward;
  return out;
}

using Groups = std::vector<FusedGroup>;

TEST(Fusion, OtherRulesCutWhereTheySay) {
  const std::vector<Module> five{module_of(1), module_of(2), module_of(3), module_of(4),
                                 module_of(5)};
  EXPECT_EQ(fuse_by_count(five, 2), (Groups{{0, 2, 3}, {2, 4, 7}, {4, 5, 5}}));
  EXPECT_EQ(fuse_by_count(five, 1).size(), 5u);
  // Ready 1, 2, ... ms after the start of the backward: the last three within 2 ms.
  EXPECT_EQ(fuse_by_waiting(five, 2 * kPicosPerMilli), (Groups{{0, 2, 3}, {2, 5, 12}}));
  EXPECT_EQ(fuse_by_waiting(five, kPicosPerMilli / 2).size(), 5u);
  EXPECT_EQ(fuse_by_waiting(five, 10 * kPicosPerMilli), (Groups{{0, 5, 15}}));
  // A module of the threshold's size does not join.
  EXPECT_EQ(fuse_by_size(five, 4, 12),
            (Groups{{0, 1, 1}, {1, 2, 2}, {2, 3, 3}, {3, 4, 4}, {4, 5, 5}}));
  EXPECT_EQ(fuse_by_size(five, 4, 13), (Groups{{0, 2, 3}, {2, 3, 3}, {3, 4, 4}, {4, 5, 5}}));
}

TEST(Fusion, LeavesNoGroupWithoutParameters) {
  const std::vector<Module> odd{module_of(0), module_of(4), module_of(0), module_of(4),
                                module_of(0)};
  const Groups two{{0, 3, 4}, {3, 5, 4}};
  EXPECT_EQ(fuse_by_size(odd, 4, 1), two);
  EXPECT_EQ(fuse_by_count(odd, 1), two);
  EXPECT_EQ(fuse_by_waiting(odd, kPicosPerMilli), (Groups{{0, 2, 4}, {2, 5, 4}}));
}

// Gradients wait for the backward of modules without parameters behind them, too.
TEST(Merging, CountsTheBackwardOfModulesWithoutParameters) {
  const std::vector<Module> modules{module_of(0, 7 * kPicosPerMilli), module_of(10'000),
                                    module_of(0, 4 * kPicosPerMilli),
                                    module_of(0, 2 * kPicosPerMilli), module_of(10'000)};
  const std::vector<ReadyTensor> tensors = tensors_of(modules);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].backward, 7 * kPicosPerMilli);
  EXPECT_EQ(tensors[1].backward, kPicosPerMilli);
  // A call of 2 ms is over when the next gradient comes.
  EXPECT_EQ(merge_calls(tensors, 4, {1e-3, 1e-3 / 40'000}).size(), 2u);
}

// The cost of a call is 1 ms, and 1 ms per 10,000 elements.
TEST(Merging, JoinsACallThatTheNextGradientCatchesUpWith) {
  const AllReduceCost cost{1e-3, 1e-3 / 40'000};
  const auto merged = [&](std::vector<std::pair<std::uint64_t, double>> tensors) {
    std::vector<ReadyTensor> list;  // elements, milliseconds of backward
    for (const auto& [numel, milliseconds] : tensors)
      list.push_back(
          {numel, list.size(),
           static_cast<Picoseconds>(milliseconds * static_cast<double>(kPicosPerMilli))});
    return merge_calls(list, 4, cost);
  };
  // The next gradient comes 0.5 ms later: within the call, and waiting costs less than a call.
  EXPECT_EQ(merged({{10'000, 0.5}, {10'000, 1}}), (Groups{{0, 2, 20'000}}));
  // 1.5 ms later: within the call of 2 ms, but a call costs less than the wait.
  EXPECT_EQ(merged({{10'000, 1.5}, {10'000, 1}}), (Groups{{0, 1, 10'000}, {1, 2, 10'000}}));
  // As before, and the link is busy for 5 ms, so the second waits anyway and takes the third along.
  EXPECT_EQ(merged({{10'000, 1.5}, {10'000, 1.5}, {40'000, 1}}),
            (Groups{{0, 2, 20'000}, {2, 3, 40'000}}));
  // Long after the call; but a tiny one never goes alone.
  EXPECT_EQ(merged({{10'000, 9}, {10'000, 1}}).size(), 2u);
  EXPECT_EQ(merged({{10'000, 9}, {8191, 1}}).size(), 1u);
  EXPECT_EQ(merged({{10'000, 9}, {8192, 1}}).size(), 2u);
}

TEST(Merging, AssumesTheCostsOfItsTablesOrTheClusters) {
  const auto cost = [](int nodes, const std::string& model) {
    return assumed_cost(
        test::load_text("model: resnet50\ndevice: rtx2080ti\n"
                        "cluster: {base: rtx2080ti-10gbe, nodes: " +
                        std::to_string(nodes) +
                        "}\nparallel: {framework: mgwfbp, allreduce_cost: " + model + "}\n")
            .spec);
  };
  EXPECT_EQ(cost(16, "10gbe").alpha, 7.043e-3);
  EXPECT_EQ(cost(8, "100gbrdma").beta, 4.907e-10);
  EXPECT_NEAR(cost(16, "cluster").alpha, 126 * 30e-6, 1e-12);
  EXPECT_NEAR(cost(16, "cluster").beta, 2.0 * 63 / 64 / 1.25e9, 1e-18);
  EXPECT_NEAR(cost(1, "cluster").beta, 2.0 * 3 / 4 / 5e9, 1e-18);  // inside a node
  EXPECT_NE(test::error_of([&] { cost(3, "10gbe"); })
                .find("costs were fitted for 4, 8, 16, 32, 64 ranks and the cluster has 12; use "
                      "parallel.allreduce_cost=cluster"),
            std::string::npos);
}

std::string text_of(const std::vector<Partition>& order) {
  std::ostringstream out;
  for (const Partition& one : order) out << one.module << ":" << one.numel << " ";
  return out.str();
}

// Backward of 1 ms a module; an element takes 1 ms.
TEST(ByteScheduler, SendsWhatTheNextForwardNeedsFirst) {
  const AllReduceCost cost{0, 1e-3 / 4};
  const std::vector<Module> three{module_of(2), module_of(2), module_of(4)};
  const auto order = [&](std::uint64_t partition, std::uint64_t credit) {
    return text_of(partition_order(three, {partition, credit, 4}, cost));
  };
  // 2 is ready at 1 ms, 1 at 2 and 0 at 3; slices of one element, one under way: P3's order.
  for (const std::uint64_t credit : {0, 4})
    EXPECT_EQ(order(4, credit), "2:1 1:1 0:1 0:1 1:1 2:1 2:1 2:1 ");
  // With a credit of three slices 2 fills it before 1 is ready.
  EXPECT_EQ(order(4, 12), "2:1 2:1 2:1 1:1 0:1 0:1 1:1 2:1 ");
  // Without cuts, and with credit for all: as the backward goes.
  EXPECT_EQ(order(4096, 1 << 20), "2:4 1:2 0:2 ");
  // A piece that is larger than the credit goes alone.
  EXPECT_EQ(order(4096, 0), "2:4 0:2 1:2 ");
  EXPECT_EQ(order(12, 12), "2:3 0:2 1:2 2:1 ");
  // So slices of 3 elements go one by one without credit, while a credit of a slice lets a second
  // one follow one of fewer elements.
  const std::vector<Module> small{module_of(3), module_of(1), module_of(1)};
  const auto sliced = [&](std::uint64_t credit) {
    return text_of(partition_order(small, {12, credit, 4}, {10e-3, 0}));
  };
  EXPECT_EQ(sliced(0), "2:1 0:3 1:1 ");
  EXPECT_EQ(sliced(12), "2:1 1:1 0:3 ");
  // A partition goes while some credit is left, even if it exceeds the credit: 2 + 2 of 3 elements.
  // When the first has ended, 0 is ready.
  EXPECT_EQ(text_of(partition_order(three, {8, 12, 4}, {0, 1.1e-3 / 4})), "2:2 2:2 0:2 1:2 ");
}

const std::string kThree =
    "model: {kind: layers, layers: [{name: a, parameters: [100], forward_us: 10, backward_us: 20}, "
    "{name: b, parameters: [60, 4], forward_us: 10, backward_us: 20}, "
    "{name: c, parameters: [7], forward_us: 10, backward_us: 20}], optimizer_us: 171}\n"
    "cluster: {nodes: 2, gpus_per_node: 2, nics_per_node: 1}\n";

Workload plan_of(const std::string& model, const std::string& parallel) {
  return plan_workload(test::load_text(model + "parallel: {" + parallel + "}\n").spec);
}

// A stream as the labels of its ops; waits and records as "<e" and ">e", across iterations "<<e".
std::string stream_text(const Program& program, std::size_t stream) {
  std::ostringstream out;
  for (const Op& op : program.streams[stream]) {
    if (op.kind == Op::Kind::wait)
      out << (op.previous ? "<<" : "<") << op.event;
    else if (op.kind == Op::Kind::record)
      out << ">" << op.event;
    else if (op.kind == Op::Kind::collective)
      out << program.labels[op.label] << "(" << op.count << ")";
    else
      out << program.labels[op.label];
    out << "; ";
  }
  return out.str();
}

TEST(DeAR, ScattersUnderTheBackwardAndGathersUnderTheNextForward) {
  const Workload workload = plan_of(kThree, "framework: dear, fusion: none");
  const Role& role = workload.roles.at(0);
  ASSERT_EQ(role.iterations.size(), 2u);
  EXPECT_EQ(workload.group_names, (std::vector<std::string>{"dp", "dp.gather"}));
  const Program& first = role.iterations[0];
  EXPECT_EQ(stream_text(first, 0),
            "forward a; forward b; forward c; backward c; >1; backward b; >1; backward a; >1; ");
  // Padded for 4 ranks: 100 + 4, 64 + 4 and 7 + 1 elements.
  EXPECT_EQ(stream_text(first, 1),
            "<1; reduce-scatter 2(2); <1; reduce-scatter 1(17); <1; reduce-scatter 0(26); >2; ");
  EXPECT_EQ(stream_text(first, 2), "<2; all-gather 0(26); >0; ");
  const Program& later = role.iterations[1];
  // Each gather but the first starts with the module before its group.
  EXPECT_EQ(stream_text(later, 2),
            "<1; all-gather 1(17); >2; <1; all-gather 2(2); >2; <4; all-gather 0(26); >0; ");
  EXPECT_EQ(stream_text(later, 1),
            "<3; reduce-scatter 2(2); <3; reduce-scatter 1(17); <3; reduce-scatter 0(26); >4; ");
  EXPECT_EQ(stream_text(later, 0),
            "<<0; >1; step a; forward a; <2; >1; step b; forward b; <2; step c; forward c; "
            "backward c; >3; backward b; >3; backward a; >3; ");
  for (const Program& program : role.iterations) {
    EXPECT_TRUE(outlives(program, 2));
    EXPECT_FALSE(outlives(program, 1));
  }
}

// Modules without parameters, whatever group they are in, wait for no gather and hold up no
// reduce-scatter but those of the modules in front of them.
TEST(DeAR, LetsModulesWithoutParametersPass) {
  const std::string odd =
      "model: {kind: layers, layers: [{name: in, forward_us: 9, backward_us: 9}, "
      "{name: a, parameters: [100], forward_us: 10, backward_us: 20}, "
      "{name: pool, forward_us: 9, backward_us: 9}, "
      "{name: b, parameters: [64], forward_us: 10, backward_us: 20}]}\n"
      "cluster: {nodes: 2, gpus_per_node: 2, nics_per_node: 1}\n";
  for (const char* fusion : {"none", "waiting_time, wait_ms: 0.01"}) {
    const Workload workload = plan_of(odd, std::string("framework: dear, fusion: ") + fusion);
    const Program& program = workload.roles[0].iterations[1];
    EXPECT_EQ(stream_text(program, 0),
              "forward in; <<0; >1; forward a; forward pool; <2; forward b; backward b; >3; "
              "backward pool; backward a; >3; backward in; >1; ")
        << fusion;
    EXPECT_EQ(stream_text(program, 2), "<1; all-gather 1(17); >2; <4; <1; all-gather 0(26); >0; ");
  }
}

TEST(DeAR, ReducesAndBroadcastsInPlaceOfBothHalves) {
  const Workload workload = plan_of(kThree, "framework: dear, fusion: none, decouple: reduce");
  const Program& program = workload.roles[0].iterations[1];
  test::CallSums reduces = test::sums_of(program, workload, "dp");
  test::CallSums broadcasts = test::sums_of(program, workload, "dp.gather");
  EXPECT_EQ(reduces.calls[Func::reduce], 3u);
  EXPECT_EQ(reduces.bytes[Func::reduce], 171u * 4);
  EXPECT_EQ(broadcasts.calls[Func::broadcast], 3u);
  EXPECT_EQ(broadcasts.bytes[Func::broadcast], 171u * 4);
}

// A step sends what one all-reduce of all gradients would, padding aside.
TEST(DeAR, MovesEveryGradientOnceThroughBothHalves) {
  for (const char* how :
       {"", ", threshold_mb: 1", ", fusion: layers", ", fusion: none", ", fusion: waiting_time"}) {
    const Workload workload =
        plan_of("model: resnet50\ndevice: rtx2080ti\ncluster: {base: rtx2080ti-10gbe, nodes: 16}\n",
                std::string("framework: dear, micro_batch: 64") + how);
    for (const Program& program : workload.roles[0].iterations) {
      test::CallSums scatters = test::sums_of(program, workload, "dp");
      const std::uint64_t calls = scatters.calls[Func::reduce_scatter];
      const std::uint64_t bytes = scatters.bytes[Func::reduce_scatter] * 64;
      EXPECT_GT(bytes, 25'557'032u * 4) << how;
      EXPECT_LE(bytes, (25'557'032u + calls * 64) * 4) << how;
    }
    test::CallSums scatters = test::sums_of(workload.roles[0].iterations[1], workload, "dp");
    test::CallSums gathers = test::sums_of(workload.roles[0].iterations[1], workload, "dp.gather");
    EXPECT_EQ(gathers.calls[Func::all_gather], scatters.calls[Func::reduce_scatter]);
    EXPECT_EQ(gathers.bytes[Func::all_gather], scatters.bytes[Func::reduce_scatter]);
    test::CallSums first = test::sums_of(workload.roles[0].iterations[0], workload, "dp.gather");
    EXPECT_EQ(first.calls[Func::all_gather], 1u);  // for the second step
  }
}

TEST(Wfbp, CallsForEveryTensorInTheOrderOfTheBackward) {
  const Workload workload = plan_of(kThree, "framework: wfbp");
  const Program& program = workload.roles.at(0).iterations.at(0);
  EXPECT_EQ(stream_text(program, 1),
            "<0; gradients 3(7); <0; gradients 2(4); gradients 1(60); <0; gradients 0(100); >1; ");
  EXPECT_EQ(stream_text(program, 0),
            "forward a; forward b; forward c; backward c; >0; backward b; >0; backward a; >0; <1; "
            "optimizer; ");
  EXPECT_TRUE(test::streams_end(program));
}

TEST(Wfbp, ReducesEveryGradientOnceHoweverCallsAreMerged) {
  for (const char* framework : {"wfbp", "mgwfbp", "mgwfbp, allreduce_cost: 10gbe"}) {
    const Workload workload =
        plan_of("model: resnet50\ndevice: rtx2080ti\ncluster: {base: rtx2080ti-10gbe, nodes: 16}\n",
                std::string("micro_batch: 64, framework: ") + framework);
    const Program& program = workload.roles[0].iterations.at(0);
    EXPECT_TRUE(test::streams_end(program));
    test::CallSums sums = test::sums_of(program, workload, "dp");
    EXPECT_EQ(sums.bytes[Func::all_reduce], 25'557'032u * 4);
    if (std::string(framework) == "wfbp") {
      EXPECT_EQ(sums.calls[Func::all_reduce], 161u);
    } else {
      EXPECT_LT(sums.calls[Func::all_reduce], 40u);
    }
  }
}

TEST(ByteScheduler, LetsEveryModuleWaitForItsOwnPartitions) {
  const Workload workload =
      plan_of(kThree, "framework: bytescheduler, partition_bytes: 4096, credit_bytes: 4096");
  const Program& later = workload.roles.at(0).iterations.at(1);
  EXPECT_EQ(stream_text(later, 0).substr(0, 91),
            "<<0; step a; forward a; <<1; step b; forward b; <<2; step c; forward c; backward c; "
            ">3; bac");
  EXPECT_TRUE(outlives(later, 1));
  test::CallSums sums = test::sums_of(later, workload, "dp");
  EXPECT_EQ(sums.bytes[Func::all_reduce], 171u * 4);
}

// After the backward a call takes all partitions that the credit admits. Modules wait for the host,
// which finishes the call's tensors one by one.
TEST(ByteScheduler, HandsOverACreditAtATimeAfterTheBackward) {
  const Workload workload = plan_of(
      kThree, "framework: bytescheduler, launch: after_backward, credit_bytes: 500, cycle_ms: 2");
  const Program& later = workload.roles.at(0).iterations.at(1);
  EXPECT_EQ(stream_text(later, 0),
            "<<0; step a; forward a; <<1; step b; forward b; <<2; step c; forward c; backward c; "
            "backward b; backward a; >3; ");
  EXPECT_EQ(stream_text(later, 1),
            "<3; cycle; partition of a(160); >4; cycle; partition of b(11); >4; ");
  EXPECT_EQ(stream_text(later, 2), "<4; finish tensors; >0; <4; finish tensors; >1; >2; ");
  EXPECT_EQ(later.streams[1][1].duration, kPicosPerMilli);
  // The call's two tensors, each looked up among four.
  EXPECT_EQ(later.streams[2][1].duration, 2 * (13'000'000 + 4 * 400'000));
  EXPECT_TRUE(outlives(later, 1));
  EXPECT_TRUE(outlives(later, 2));
}

TEST(ByteScheduler, CutsEveryTensorIntoPartitions) {
  const Workload workload =
      plan_of("model: resnet50\ndevice: rtx2080ti\ncluster: {base: rtx2080ti-10gbe, nodes: 4}\n",
              "framework: bytescheduler, micro_batch: 64, partition_bytes: 1000000");
  for (const Program& program : workload.roles[0].iterations) {
    test::CallSums sums = test::sums_of(program, workload, "dp");
    EXPECT_EQ(sums.bytes[Func::all_reduce], 25'557'032u * 4);
    for (const Op& op : program.streams[1])
      if (op.kind == Op::Kind::collective) {
        EXPECT_LE(op.count, 250'000u);
      }
  }
}

TEST(Schedulers, RefuseWhatCannotBe) {
  const auto error = [](const std::string& parallel) {
    return test::error_of([&] { plan_of(kThree, parallel); });
  };
  EXPECT_NE(error("framework: dear, threshold_mb: 0")
                .find("a fusion threshold of 0 MiB fuses nothing; give a size, or use "
                      "parallel.fusion=none"),
            std::string::npos);
  EXPECT_NE(error("framework: dear, dp: 3").find("use parallel.dp=4"), std::string::npos);
  EXPECT_NE(test::error_of([] {
              plan_of("model: gpt3-13b\ndevice: {base: h100-sxm, memory_bytes: 0}\n",
                      "framework: bytescheduler, partition_bytes: 4096");
            }).find("at most 1000000 are played; use a larger parallel.partition_bytes"),
            std::string::npos);
  EXPECT_NE(error("framework: bytescheduler, launch: flat").find("use overlap or after_backward"),
            std::string::npos);
  EXPECT_NE(
      error("framework: bytescheduler, cycle_ms: 5").find("use parallel.launch=after_backward"),
      std::string::npos);
  EXPECT_NE(error("framework: bytescheduler, launch: after_backward, allreduce_cost: 10gbe")
                .find("whatever a call costs; leave it out, or use parallel.launch=overlap"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
