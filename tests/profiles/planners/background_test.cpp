// Background traffic as programs: ranks, bytes and steps.
#include "profiles/planners/background.h"

#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "profiles/workload/workload_check.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

using test::load_error;
using test::load_text;

// Two tensors with 1,000,003 parameters in all, on four GPUs of two nodes, and one storage node.
std::string ddp_job(const std::string& background) {
  return "schema: ghostrank/job/1\n"
         "model: {kind: layers, name: two, layers: [{parameters: [1000000, 3], forward_us: 100, "
         "backward_us: 200}]}\n"
         "cluster: {nodes: 2, gpus_per_node: 2, nics_per_node: 2, storage_nodes: 1}\n"
         "background: " +
         background + "\n";
}

Workload planned(const std::string& text) { return plan_workload(load_text(text).spec); }

std::uint16_t kind_of(const Workload& workload, const std::string& group) {
  const auto& names = workload.group_names;
  return static_cast<std::uint16_t>(std::find(names.begin(), names.end(), group) - names.begin());
}

// Bytes that a rank moves in an iteration, without requests.
std::uint64_t moved(const Workload& workload, int rank, std::size_t iteration,
                    const std::string& group) {
  const Role& role = workload.roles[workload.role_of[WorldRank(rank)]];
  const std::size_t number =
      std::min(program_number(workload, iteration), role.iterations.size() - 1);
  std::uint64_t bytes = 0;
  for (const auto& stream : role.iterations[number].streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::collective && op.group == kind_of(workload, group))
        bytes += op.count * bytes_of(op.dtype);
  return bytes;
}

TEST(Checkpoint, HoldsWeightsAndOptimizerStateOfEveryParameterOnce) {
  const Workload w = planned(ddp_job("[{pattern: checkpoint}]"));
  EXPECT_EQ(w.ranks, 6);
  EXPECT_EQ(w.servers, 2);
  // fp32 weights and two fp32 moments, on four ranks, rounded up.
  for (const int rank : {0, 1, 2, 3})
    EXPECT_EQ(moved(w, rank, 5, "checkpoint"), (1000003ULL * 12 + 3) / 4);
}

TEST(Checkpoint, OfMegatronIsOnTheRanksOfEachStage) {
  // Llama-3 8B: 16 layers of 218,112,000 a stage; embedding and head of 128256 x 4096; one norm.
  const Workload w = planned(
      "schema: ghostrank/job/1\nmodel: llama3-8b\ndevice: {base: h100-sxm, memory_bytes: 0}\n"
      "precision: {parameters: bf16, gradients: fp32}\n"
      "cluster: {nodes: 8, gpus_per_node: 1, nics_per_node: 1, storage_nodes: 3}\n"
      "parallel: {framework: megatron, tp: 2, pp: 2, dp: 2, sequence_parallel: true}\n"
      "background: [{pattern: checkpoint}]\n");
  const std::uint64_t layers = 16ULL * 218112000, words = 128256ULL * 4096;
  EXPECT_EQ(moved(w, 0, 0, "checkpoint"), (layers + words) * 14 / 4);
  EXPECT_EQ(moved(w, 7, 0, "checkpoint.2"), (layers + words + 4096) * 14 / 4);
  EXPECT_EQ(moved(w, 0, 0, "checkpoint.2"), 0U);
}

TEST(Checkpoint, IsWrittenInTheLastOfSoManyStepsAndThoseAfterIt) {
  const Workload w = planned(ddp_job("[{pattern: checkpoint, every: 5, over: 2, bytes: 4001}]"));
  for (std::size_t i = 0; i < 30; ++i) {
    const std::uint64_t expected = i < 4 ? 0 : i % 5 == 4 ? 500 : i % 5 == 0 ? 501 : 0;
    EXPECT_EQ(moved(w, 3, i, "checkpoint"), expected) << "iteration " << i;
    EXPECT_EQ(moved(w, 5, i, "checkpoint"), expected) << "server, iteration " << i;
  }
}

TEST(Checkpoint, LeavesDdpItsFirstIterations) {
  const Workload w = planned(ddp_job("[{pattern: checkpoint, every: 2}]"));
  const auto gradients = [&](std::size_t i) {
    return test::sums_of(w.roles[0].iterations[program_number(w, i)], w, "dp")
        .calls[Func::broadcast];
  };
  EXPECT_EQ(gradients(0), 0U);
  EXPECT_EQ(gradients(1), 2U);  // the buckets are rebuilt; it writes
  EXPECT_EQ(gradients(2), 0U);
  EXPECT_GT(moved(w, 0, 1, "checkpoint"), 0U);
  EXPECT_EQ(moved(w, 0, 2, "checkpoint"), 0U);
}

TEST(Checkpoint, GoesToTheServerOfItsRail) {
  const Workload w = planned(ddp_job("[{pattern: checkpoint}]"));
  for (const Group& group : w.groups) {
    if (group.kind != kind_of(w, "checkpoint")) continue;
    const WorldRank server = group.members[0];
    EXPECT_EQ(group.members, (std::vector<WorldRank>{server, server - 4, server - 2}));
  }
}

TEST(DataLoading, MovesTheSamplesOfAStep) {
  const Workload w = planned(ddp_job("[{pattern: data, bytes: 1000}]"));
  EXPECT_EQ(moved(w, 2, 7, "data"), 1000U);  // one sample per GPU
}

TEST(DataLoading, KnowsHowManyBytesATokenHas) {
  const Workload w = planned(
      "schema: ghostrank/job/1\nmodel: gpt2\ndevice: h100-sxm\n"
      "cluster: {nodes: 2, gpus_per_node: 1, storage_nodes: 1}\n"
      "parallel: {micro_batch: 4}\nbackground: [{pattern: data}]\n");
  EXPECT_EQ(moved(w, 0, 3, "data"), 4ULL * 1024 * 8);
}

TEST(Background, OfSeveralPatternsHasAProgramForEveryMixture) {
  const Workload w =
      planned(ddp_job("[{pattern: data, bytes: 1000, every: 2}, {pattern: checkpoint, every: 3}]"));
  EXPECT_EQ(w.cycle, 6U);
  for (std::size_t i = 3; i < 20; ++i) {
    EXPECT_EQ(moved(w, 0, i, "data") > 0, i % 2 == 1) << i;
    EXPECT_EQ(moved(w, 0, i, "checkpoint") > 0, i % 3 == 2) << i;
  }
}

TEST(Background, CutsChunksAndKeepsTheirSum) {
  const Workload w = planned(
      ddp_job("[{pattern: checkpoint, bytes: 40010, chunk: 4KiB, rate: 1Gbps, at_once: 2}]"));
  EXPECT_EQ(moved(w, 1, 0, "checkpoint"), 10003U);
  const Program& steady = w.roles[0].iterations.back();
  EXPECT_TRUE(test::streams_end(steady));
  EXPECT_EQ(test::sums_of(steady, w, "checkpoint").calls[Func::gather], 3U);
}

TEST(Background, IsRefusedWithWhatToDo) {
  const auto plan_error = [](const std::string& text) {
    return test::error_of([&] { planned(text); });
  };
  EXPECT_NE(plan_error(ddp_job("[{pattern: data}]")).find("add bytes, as in {pattern: data"),
            std::string::npos);
  EXPECT_NE(plan_error(ddp_job("[]")).find("cluster.storage_nodes is 1 but nothing is stored"),
            std::string::npos);
  EXPECT_NE(load_error(ddp_job("[{pattern: checkpoint, over: 2}]")).find("over is 2 but every 1"),
            std::string::npos);
  EXPECT_NE(load_error(ddp_job("{pattern: data}")).find("write a list"), std::string::npos);
  EXPECT_NE(load_error(ddp_job("[{every: 2}]")).find("no pattern"), std::string::npos);
  EXPECT_NE(plan_error(ddp_job("[{pattern: checkpoint, bytes: 1GiB, chunk: 1}]"))
                .find("use a larger chunk"),
            std::string::npos);
  EXPECT_NE(plan_error(ddp_job("[{pattern: checkpoint, every: 99991}, {pattern: checkpoint, "
                               "every: 99989}]"))
                .find("choose multiples of one number"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
