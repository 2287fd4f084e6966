#include "profiles/planners/ddp.h"

#include <utility>

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

using Kind = Op::Kind;
constexpr std::uint64_t kMiB = 1 << 20;

std::vector<std::pair<std::size_t, std::uint64_t>> default_buckets(const std::string& model) {
  std::vector<std::pair<std::size_t, std::uint64_t>> out;
  for (const Bucket& bucket : ddp_buckets(test::shipped_model(model), 4, kMiB, 25 * kMiB))
    out.emplace_back(bucket.tensors, bucket.bytes);
  return out;
}

TEST(DdpBuckets, OfResNet50AndVgg16AreThoseOfPyTorch) {
  using Buckets = std::vector<std::pair<std::size_t, std::uint64_t>>;
  EXPECT_EQ(default_buckets("resnet50"),
            (Buckets{{2, 8196000}, {15, 31502336}, {12, 26255360}, {51, 26550272}, {81, 9724160}}));
  EXPECT_EQ(default_buckets("vgg16"), (Buckets{{2, 16388000},
                                               {2, 67125248},
                                               {2, 411058176},
                                               {6, 28317696},
                                               {10, 28319744},
                                               {10, 2221312}}));
}

TEST(DdpBuckets, OfTransformersAreAsManyAsPyTorchHas) {
  const auto base = default_buckets("bert-base");
  EXPECT_EQ(base.size(), 14u);
  EXPECT_NEAR(static_cast<double>(base.front().second) / kMiB, 2.26, 0.005);
  EXPECT_NEAR(static_cast<double>(base.back().second) / kMiB, 93.18, 0.005);
  EXPECT_EQ(default_buckets("bert-large").size(), 38u);
  const auto gpt2 = default_buckets("gpt2");
  EXPECT_EQ(gpt2.size(), 13u);
  EXPECT_NEAR(static_cast<double>(gpt2.front().second) / kMiB, 9.01, 0.005);
  EXPECT_NEAR(static_cast<double>(gpt2[1].second) / kMiB, 27.04, 0.005);
  EXPECT_NEAR(static_cast<double>(gpt2.back().second) / kMiB, 168.27, 0.005);
  EXPECT_EQ(default_buckets("gpt2-xl").size(), 145u);
}

TEST(DdpBuckets, HoldEveryGradientOnce) {
  const Model model = test::shipped_model("bert-base");
  for (const std::uint64_t cap : {std::uint64_t{0}, kMiB, 25 * kMiB, 1000 * kMiB}) {
    std::uint64_t numel = 0;
    std::size_t tensors = 0;
    for (const Bucket& bucket : ddp_buckets(model, 2, kMiB, cap)) {
      EXPECT_EQ(bucket.bytes, 2 * bucket.numel);
      numel += bucket.numel;
      tensors += bucket.tensors;
    }
    EXPECT_EQ(numel, model.parameters());
    EXPECT_EQ(tensors, model.tensors());
  }
}

// Three measured layers of 1000 int32 each, a bucket of one layer and one of two, four GPUs.
const char* const kSmall =
    "model:\n"
    "  kind: layers\n"
    "  dtype: int32\n"
    "  layers:\n"
    "    - {name: a, parameters: [1000], forward_us: 1, backward_us: 10}\n"
    "    - {name: b, parameters: [600, 400], forward_us: 2, backward_us: 20}\n"
    "    - {name: c, parameters: [1000], forward_us: 3, backward_us: 30}\n"
    "  optimizer_us: 7\n"
    "cluster: {nodes: 2, gpus_per_node: 2}\n"
    "parallel: {framework: ddp, first_bucket_mb: 0.001, bucket_cap_mb: 0.005}\n";

std::string text_of(const Program& program, const Op& op) {
  switch (op.kind) {
    case Kind::compute:
      return program.labels[op.label] + " " + std::to_string(op.duration / kPicosPerMicro);
    case Kind::collective:
      return program.labels[op.label] + " " + std::string(name_of(op.func)) + " " +
             std::to_string(op.count) + " " + std::string(name_of(op.dtype));
    case Kind::record:
      return "record " + std::to_string(op.event);
    case Kind::wait:
      return "wait " + std::to_string(op.event);
    default:
      return "?";
  }
}

std::vector<std::string> stream(const Program& program, std::size_t s) {
  std::vector<std::string> out;
  for (const Op& op : program.streams.at(s)) out.push_back(text_of(program, op));
  return out;
}

Workload small(const std::vector<std::string>& overrides = {}) {
  return plan_workload(test::load_text(kSmall, overrides).spec);
}

using Ops = std::vector<std::string>;

TEST(Ddp, ReducesEverythingAtOnceInTheFirstIteration) {
  const Program first = small().roles[0].iterations[0];
  EXPECT_EQ(first.stream_names, (Ops{"compute", "comm"}));
  EXPECT_EQ(stream(first, 0),
            (Ops{"forward a 1", "forward b 2", "forward c 3", "backward c 30", "backward b 20",
                 "backward a 10", "record 0", "wait 1", "optimizer 7"}));
  EXPECT_EQ(stream(first, 1), (Ops{"wait 0", "gradients allreduce 3000 int32", "record 1"}));
}

TEST(Ddp, RebuildsBucketsAtTheStartOfTheSecondIteration) {
  const Program second = small().roles[0].iterations[1];
  const Ops comm = stream(second, 1), compute = stream(second, 0);
  EXPECT_EQ(Ops(comm.begin(), comm.begin() + 4),
            (Ops{"bucket indices broadcast 5 int32", "record 0", "bucket sizes broadcast 2 int32",
                 "record 0"}));
  EXPECT_EQ(Ops(compute.begin(), compute.begin() + 3), (Ops{"wait 0", "wait 0", "forward a 1"}));
}

TEST(Ddp, RunsTwoAllReducesAtATimeOverGlooAlone) {
  const auto at_once = [](const std::string& library) {
    const Workload workload = small({"collectives.library=" + library});
    std::vector<int> workers;
    for (const Program& program : workload.roles[0].iterations)
      workers.push_back(program.at_once.at(1));
    return workers;
  };
  EXPECT_EQ(at_once("gloo"), (std::vector{2, 2, 2}));
  EXPECT_EQ(at_once("nccl-2.28"), (std::vector{1, 1, 1}));
}

// Tensors that are compressed one by one leave no buckets to learn, so the first iteration already
// plays a recorded step.
TEST(Ddp, HasNoFirstIterationsWhereTensorsAreReducedOneByOne) {
  const auto programs = [](const std::string& recorded) {
    return plan_workload(test::load_text("model: {kind: layers, layers: [{parameters: [1000, 500], "
                                         "forward_us: 1, backward_us: 1}]" +
                                         recorded +
                                         "}\ncluster: {nodes: 2, gpus_per_node: 1}\n"
                                         "compression: {method: topk, ratio: 0.1, merge: tensor}\n")
                             .spec)
        .roles[0]
        .iterations;
  };
  EXPECT_EQ(programs("").size(), 1u);
  const std::vector<Program> steps =
      programs(", recorded_ns: [[[1, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2]]]");
  ASSERT_EQ(steps.size(), 2u);
  for (const Program& step : steps)
    EXPECT_EQ(step.streams[1].size(), programs("")[0].streams[1].size());
}

// The controller repeats one step, and no recorded one stands for all.
TEST(Ddp, PlaysTheMediansOfRecordedStepsWhereRatiosFollowABudget) {
  const auto planned = [](const std::string& recorded) {
    return plan_workload(test::load_text("model: {kind: layers, layers: [{parameters: [1000], "
                                         "forward_us: 2, backward_us: 2}]" +
                                         recorded +
                                         "}\ncluster: {nodes: 2, gpus_per_node: 1}\n"
                                         "compression: {method: topk, budget_ms: 5}\n")
                             .spec);
  };
  const Workload medians = planned(""),
                 recorded = planned(", recorded_ns: [[[1, 1, 1, 1, 1, 1], [9, 9, 9, 9, 9, 9]]]");
  ASSERT_EQ(recorded.roles.size(), 1u);
  ASSERT_EQ(recorded.roles[0].iterations.size(), medians.roles[0].iterations.size());
  for (std::size_t i = 0; i < medians.roles[0].iterations.size(); ++i)
    EXPECT_EQ(stream(recorded.roles[0].iterations[i], 0),
              stream(medians.roles[0].iterations[i], 0));
}

// Its buckets are made in the order of registration, and reversed.
TEST(Ddp, SumsWhichParametersWereUsedInEveryStepThatLooksForUnusedOnes) {
  std::string text = kSmall;
  text.replace(text.find("  optimizer_us"), 0, "  find_unused_parameters: true\n");
  const Role role = plan_workload(test::load_text(text).spec).roles[0];
  ASSERT_EQ(role.iterations.size(), 1u);
  EXPECT_EQ(stream(role.iterations[0], 0),
            (Ops{"forward a 1", "forward b 2", "forward c 3", "backward c 30", "backward b 20",
                 "record 0", "backward a 10", "record 0", "wait 1", "optimizer 7"}));
  EXPECT_EQ(stream(role.iterations[0], 1), (Ops{"wait 0", "bucket 0 allreduce 2000 int32", "wait 0",
                                                "bucket 1 allreduce 1000 int32",
                                                "used parameters allreduce 4 int32", "record 1"}));
}

TEST(Ddp, OverlapsBucketsWithTheBackwardAfterwards) {
  const Workload workload = small();
  ASSERT_EQ(workload.roles[0].iterations.size(), 3u);
  const Program& steady = workload.roles[0].iterations[2];
  EXPECT_EQ(stream(steady, 0),
            (Ops{"forward a 1", "forward b 2", "forward c 3", "backward c 30", "record 0",
                 "backward b 20", "backward a 10", "record 0", "wait 1", "optimizer 7"}));
  EXPECT_EQ(stream(steady, 1), (Ops{"wait 0", "bucket 0 allreduce 1000 int32", "wait 0",
                                    "bucket 1 allreduce 2000 int32", "record 1"}));
}

TEST(Ddp, LaunchesBucketsAfterTheBackwardWhenAsked) {
  const Program steady = small({"parallel.launch=after_backward"}).roles[0].iterations[2];
  EXPECT_EQ(stream(steady, 1), (Ops{"wait 0", "bucket 0 allreduce 1000 int32",
                                    "bucket 1 allreduce 2000 int32", "record 1"}));
  EXPECT_EQ(stream(steady, 0)[6], "record 0");
}

TEST(Ddp, ReducesAllGradientsAsOneWhenFlat) {
  const Role role = small({"parallel.launch=flat"}).roles[0];
  ASSERT_EQ(role.iterations.size(), 1u);
  EXPECT_EQ(stream(role.iterations[0], 1),
            (Ops{"wait 0", "gradients allreduce 3000 int32", "record 1"}));
}

TEST(Ddp, ReducesInTheTypeOfTheGradients) {
  const Program steady = small({"precision.gradients=bf16"}).roles[0].iterations[2];
  EXPECT_EQ(stream(steady, 1)[1], "bucket 0 allreduce 1000 bfloat16");
}

TEST(Ddp, ClosesSeveralBucketsInsideOneLayer) {
  const Program steady =
      small({"parallel.first_bucket_mb=0", "parallel.bucket_cap_mb=0"}).roles[0].iterations[2];
  EXPECT_EQ(stream(steady, 1), (Ops{"wait 0", "bucket 0 allreduce 1000 int32", "wait 0",
                                    "bucket 1 allreduce 400 int32", "bucket 2 allreduce 600 int32",
                                    "wait 0", "bucket 3 allreduce 1000 int32", "record 1"}));
}

// ResNet-50 has 53 batch norms with 26,560 channels in all; a network without batch norms
// broadcasts nothing.
TEST(Ddp, BroadcastsTheBuffersOfBatchNormsBeforeEveryForward) {
  const auto workload = [](const std::string& model) {
    return plan_workload(
        test::load_text("model: " + model + "\ndevice: h100-sxm\ncluster: {nodes: 4}\n").spec);
  };
  const Workload resnet = workload("resnet50");
  for (const Program& program : resnet.roles[0].iterations) {
    EXPECT_TRUE(test::streams_end(program));
    std::vector<std::string> broadcasts;
    for (const Op& op : program.streams[1])
      if (op.kind == Op::Kind::collective && op.func == Func::broadcast &&
          program.labels[op.label].find("bucket") == std::string::npos)
        broadcasts.push_back(std::to_string(op.count) + " " + std::string(name_of(op.dtype)));
    EXPECT_EQ(broadcasts, (Ops{"53120 float32", "53 int64"}));
  }
  EXPECT_EQ(test::sums_of(workload("vgg16").roles[0].iterations.back(), workload("vgg16"), "dp")
                .calls[Func::broadcast],
            0u);
}

TEST(Ddp, PutsEveryGpuIntoOneGroupInRankOrder) {
  const Workload workload = small();
  EXPECT_EQ(workload.ranks, 4);
  EXPECT_EQ(workload.role_of.rows(), (std::vector<std::uint16_t>{0, 0, 0, 0}));
  EXPECT_EQ(workload.group_names, (Ops{"dp"}));
  ASSERT_EQ(workload.groups.size(), 1u);
  EXPECT_EQ(workload.groups[0].members, world_ranks({0, 1, 2, 3}));
  EXPECT_EQ(workload.samples_per_iteration, 4);
  EXPECT_EQ(workload.flops_per_iteration, 0);  // measured layers have no FLOPs
}

TEST(Ddp, ProgramsAlwaysEnd) {
  for (const char* launch : {"overlap", "after_backward", "flat"})
    for (const char* cap : {"0", "0.001", "25", "1000"})
      for (const char* model : {"resnet50", "gpt2", "bert-base"}) {
        const Workload workload =
            plan_workload(test::load_text("{}", {std::string("model=") + model, "device=h100-sxm",
                                                 std::string("parallel.launch=") + launch,
                                                 std::string("parallel.bucket_cap_mb=") + cap})
                              .spec);
        for (const Program& program : workload.roles[0].iterations) {
          EXPECT_TRUE(test::streams_end(program)) << model << " " << launch << " " << cap;
        }
      }
}

TEST(MainJob, ReducesGpt2XlOn64RanksIn145Buckets) {
  const LoadedJob job = load_job("gpt2-xl-ddp", {});
  const Workload workload = plan_workload(job.spec);
  EXPECT_EQ(workload.ranks, 64);
  EXPECT_EQ(workload.samples_per_iteration, 512);
  const Program& steady = workload.roles[0].iterations[2];
  std::uint64_t reduced = 0;
  int buckets = 0, computes = 0;
  for (const Op& op : steady.streams[1])
    if (op.kind == Kind::collective) {
      reduced += op.count;
      ++buckets;
    }
  for (const Op& op : steady.streams[0]) computes += op.kind == Kind::compute;
  EXPECT_EQ(buckets, 145);
  EXPECT_EQ(reduced, 1557611200u);
  EXPECT_EQ(computes, 50 + 50 + 145 + 1);  // forward, backward, copies out of buckets, optimizer
}

TEST(ComputeTime, IsFlopsOverPeakAndEfficiency) {
  const LoadedJob job =
      test::load_text("{model: gpt2, precision: {parameters: bf16}, parallel: {micro_batch: 4}}",
                      {"device={peak_tflops: {bf16: 100, fp32: 10}, efficiency: 0.5, "
                       "memory_GBps: 1000}"});
  const Workload workload = plan_workload(job.spec);
  double compute = 0;
  for (const Op& op : workload.roles[0].iterations[2].streams[0]) compute += seconds(op.duration);
  const double flops = 3 * 4 * job.spec.model->forward_flops();
  // Adam reads 16 bytes per parameter and writes 12.
  const double optimizer = 28.0 * 124439808 / 1000e9;
  EXPECT_NEAR(compute, flops / 50e12 + optimizer, 1e-9);
  EXPECT_DOUBLE_EQ(workload.flops_per_iteration, flops * 8);
}

TEST(ComputeTime, UsesTensorFloat32WhereThereIsOne) {
  const auto compute = [](const char* device) {
    const LoadedJob job =
        test::load_text("{model: gpt2, parallel: {dp: 8}}", {std::string("device=") + device});
    const Workload workload = plan_workload(job.spec);
    double sum = 0;
    for (const Op& op : workload.roles[0].iterations[2].streams[0]) sum += seconds(op.duration);
    return sum;
  };
  EXPECT_NEAR(compute("{peak_tflops: {fp32: 10, tf32: 80}}") * 8,
              compute("{peak_tflops: {fp32: 10}}"), 1e-6);
}

TEST(Ddp, MustFitTheCluster) {
  EXPECT_EQ(test::load_error(kSmall, {"parallel.dp=6"}),
            "-s 'parallel.dp=6': parallel.dp is 6 but the cluster has 4 GPUs; use parallel.dp=4, "
            "or cluster.nodes=3");
  EXPECT_EQ(test::load_error(kSmall, {"parallel.dp=3"}),
            "-s 'parallel.dp=3': parallel.dp is 3 but the cluster has 4 GPUs; use parallel.dp=4");
  EXPECT_EQ(test::load_error(kSmall, {"parallel.dp=4"}), "");
}

TEST(Ddp, RefusesDelaysThatCannotBeMeant) {
  EXPECT_EQ(test::load_error("{model: gpt2-xl, device: {peak_tflops: {fp32: 1e-9}}}"),
            "job.yaml:1:26: the forward of h.0 would take more than 1000000 s; check the device's "
            "peak_tflops and memory_GBps and the model's sizes");
}

}  // namespace
}  // namespace ghostrank
