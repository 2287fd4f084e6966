// Real bytes through memory: every algorithm of the registry reduces for real, every element is
// checked, and the ledger equals the plan.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/schedule.h"
#include "profiles/error.h"
#include "profiles/workload/rooted.h"
#include "tests/collectives/calls.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

using testing::choose, testing::expect_ledger_as_planned;

struct Shape {
  int nodes, gpus;
};

// NCCL's PAT requires one rank per node. Its NVLS and NVLSTree require several, and elements larger
// than a byte: NVLS inside a node, NVLSTree between nodes. They refuse anything else.
bool fits(const Algorithm& row, Shape shape, DataType type) {
  if (row.name == "pat") return shape.gpus == 1;
  if (row.name != "nvls" && row.name != "nvlstree") return true;
  return (shape.nodes == 1) == (row.name == "nvls") && shape.gpus > 1 && bytes_of(type) > 1;
}

struct Trial {
  FabricKind kind;
  DataType type;
  Shape shape;
  std::uint64_t count;
};

// All shapes and counts in virtual time, all data types on both fabrics, few runs in real time.
std::vector<Trial> trials() {
  constexpr FabricKind kVirtual = FabricKind::virtual_time, kMemory = FabricKind::memory;
  std::vector<Trial> all;
  for (const Shape shape : {Shape{1, 2}, Shape{1, 8}, Shape{3, 1}, Shape{4, 2}, Shape{2, 8}})
    for (const std::uint64_t count : {1, 7, 1001})
      all.push_back({kVirtual, DataType::int32, shape, count});
  for (const DataType type :
       {DataType::float32, DataType::bfloat16, DataType::int64, DataType::uint8})
    for (const Shape shape : {Shape{5, 1}, Shape{4, 2}})
      all.push_back({kVirtual, type, shape, 1001});
  for (const DataType type :
       {DataType::int32, DataType::float32, DataType::bfloat16, DataType::int64, DataType::uint8})
    for (const Shape shape : {Shape{3, 1}, Shape{2, 4}})
      all.push_back({kMemory, type, shape, 1001});
  return all;
}

class EveryAlgorithm : public ::testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryAlgorithm, ReducesRealDataRightInMemoryAndInVirtualTime) {
  const Algorithm& row = *GetParam();
  for (const auto& [kind, type, shape, count] : trials()) {
    if (!fits(row, shape, type)) continue;
    SmallJob job(shape.nodes, shape.gpus, kind);
    choose(job.spec.collectives, row);
    job.spec.run.verify = true;
    job.spec.run.iterations = 2;
    job.spec.collectives.slice_bytes = count == 1001 ? 512 : 0;
    job.spec.collectives.credits = count == 7 ? 2 : 0;
    const GroupRank last = job.workload.ranks - 1;
    if (is_ragged(row.func))
      job.collective(row.func, testing::ragged_counts(row.func, job.workload.ranks, count), type);
    else
      job.collective(row.func, count, type, row.func == Func::send_recv ? 0 : last);
    const Result result = job.run();
    ASSERT_EQ(result.interrupted, "") << row.name;
    ASSERT_TRUE(result.verify.has_value());
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    if (row.func != Func::barrier) {
      EXPECT_GT(result.verify->checked_elements, 0u);
    }
    expect_ledger_as_planned(job, result);
  }
}

SmallJob one_call(const Algorithm& row, int nodes, int gpus) {
  SmallJob job(nodes, gpus, FabricKind::virtual_time);
  job.spec.cluster.nic.latency = job.spec.cluster.intra_node.latency = 10 * kPicosPerMicro;
  choose(job.spec.collectives, row);
  if (is_ragged(row.func))
    job.collective(row.func, testing::ragged_counts(row.func, job.workload.ranks, 3));
  else
    job.collective(row.func, 3, DataType::int32,
                   row.func == Func::send_recv ? 0 : nodes * gpus - 1);
  return job;
}

TEST_P(EveryAlgorithm, TakesAsLongAsThePlanSaysAtLeast) {
  const Algorithm& row = *GetParam();
  for (const int nodes : {2, 3, 8, 13}) {
    if (!fits(row, {nodes, 1}, DataType::int32)) continue;
    const SmallJob job = one_call(row, nodes, 1);
    const double least = plan_traffic(job.spec, job.workload).step_seconds_at_least;
    EXPECT_LE(least, job.run().iterations[0].seconds * (1 + 1e-9)) << row.name << " " << nodes;
    // Of the others nobody may answer a message.
    const bool answered =
        !has_root(row.func) && !is_ragged(row.func) && row.func != Func::send_recv;
    if (answered) {
      EXPECT_GE(least, 9.9e-6) << row.name << " " << nodes;
    }
  }
}

TEST_P(EveryAlgorithm, InsideANodeTakesAboutAsLongAsItsMessages) {
  const Algorithm& row = *GetParam();
  if (row.func == Func::send_recv || !fits(row, {1, 8}, DataType::int32)) return;
  SmallJob job = one_call(row, 1, 8);
  job.spec.fabric.inside_node = InsideNode::messages;
  const double messages = job.run().iterations[0].seconds;
  job.spec.fabric.inside_node = InsideNode::model;
  EXPECT_NEAR(job.run().iterations[0].seconds, messages, 0.05 * messages) << row.name;
}

// Nobody sends, so a latency is no part of the plan's least time; schemes with agents, too.
TEST(AGroupOfOneRank, TakesAsLongAsThePlanSaysAtLeast) {
  for (const Algorithm& row : registry()) {
    if ((!row.make && !row.ends) || row.func == Func::send_recv) continue;
    if (!fits(row, {1, 1}, DataType::int32)) continue;
    SmallJob job = one_call(row, 1, 1);                      // for its counts and root
    if (row.ends) job.spec.collectives.library = "generic";  // schemes are of every library
    job.workload.ranks = job.spec.cluster.nodes = 2;
    job.workload.role_of.assign(2, 0);
    job.spec.cluster.servers.count = 1;
    job.workload.groups = {{0, {WorldRank(0)}}, {0, {WorldRank(1)}}};
    const double least = plan_traffic(job.spec, job.workload).step_seconds_at_least;
    EXPECT_LE(least, job.run().iterations[0].seconds) << row.library << " " << row.name;
  }
}

std::vector<const Algorithm*> all_rows() {
  std::vector<const Algorithm*> rows;
  for (const Algorithm& row : registry())
    if (row.make) rows.push_back(&row);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryAlgorithm, ::testing::ValuesIn(all_rows()),
                         [](const auto& test) {
                           std::string name = std::string(test.param->library) + "_" +
                                              std::string(name_of(test.param->func)) + "_" +
                                              std::string(test.param->name);
                           for (char& c : name) {
                             if (c == '-' || c == '.') c = '_';
                           }
                           return name;
                         });

TEST(Verify, HolesInAMessageTravelAndTouchNothing) {
  SmallJob job(5, 1, FabricKind::memory);
  job.spec.run.verify = true;
  job.spec.collectives.library = "nccl-2.30";
  job.spec.collectives.algorithm(Func::reduce_scatter) = "pat";
  job.collective(Func::reduce_scatter, 100);
  const Result result = job.run();
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  double bytes = 0;
  for (const auto& pair : result.pairs) bytes += pair.bytes;
  EXPECT_EQ(bytes, 5u * 7u * 400u);  // 4 blocks of every rank; 3 list entries refer to no block
}

TEST(Verify, ReductionsOfALaterCallDoNotPassForThoseOfAnEarlierOne) {
  SmallJob job(2, 2, FabricKind::memory);
  job.spec.run.verify = true;
  job.spec.run.iterations = 3;
  for (int i = 0; i < 5; ++i)
    job.collective(Func::all_reduce, 997).collective(Func::all_to_all, 31);
  const Result result = job.run();
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  EXPECT_EQ(result.verify->checked_elements, 3u * 5u * 4u * (997u + 4u * 31u));
}

TEST(Verify, CallsWithOtherCountsAreOtherCalls) {
  const auto counts = [](std::vector<std::uint64_t> list) {
    return std::make_shared<const std::vector<std::uint64_t>>(std::move(list));
  };
  SmallJob job(2, 2, FabricKind::memory);
  job.spec.run.verify = true;
  job.collective(Func::all_gather_v, counts({5, 0, 7, 1}))
      .collective(Func::all_gather_v, counts({0, 0, 0, 9}))
      .collective(Func::all_to_all_v, counts({0, 1, 2, 3, 4, 0, 6, 7, 8, 9, 0, 11, 12, 13, 14, 0}));
  const Result result = job.run();
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  EXPECT_EQ(result.verify->checked_elements, 4u * (13 + 9) + 90u);
  expect_ledger_as_planned(job, result);
  EXPECT_EQ(plan_traffic(job.spec, job.workload).collectives[0].buffer_bytes, 4u * (13 + 9));
}

TEST(Verify, CountsOfAnotherGroupAreRefused) {
  SmallJob job(2, 2, FabricKind::memory);
  job.collective(Func::all_gather_v, std::make_shared<const std::vector<std::uint64_t>>(3, 1));
  EXPECT_THROW(job.run(), Error);
  SmallJob none(2, 2, FabricKind::memory);
  none.collective(Func::all_to_all_v, 10);
  EXPECT_THROW(none.run(), Error);
}

TEST(Verify, RefusesWhatDoesNotFitIntoMemory) {
  SmallJob huge(2, 2, FabricKind::memory);
  huge.spec.run.verify = true;
  huge.collective(Func::all_reduce, 1ULL << 40);
  EXPECT_THROW(huge.run(), Error);
}

TEST(Memory, PlaysTheSameMessagesAsVirtualTimeAndNearlyTheSameStep) {
  SmallJob job(4, 4, FabricKind::virtual_time);
  job.spec.run.iterations = 3;
  job.spec.run.jitter = 0.1;
  job.spec.dilation = 200;
  job.compute(2 * kPicosPerMilli).collective(Func::all_reduce, 300'000).compute(kPicosPerMilli);
  const Result modelled = job.run();
  job.spec.fabric.kind = FabricKind::memory;
  const Result played = job.run();
  expect_ledger_as_planned(job, modelled);
  expect_ledger_as_planned(job, played);
  ASSERT_EQ(played.iterations.size(), 3u);
  // A step may be late, but never early: delays are only ever re-anchored later.
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_GE(played.iterations[i].seconds, modelled.iterations[i].seconds * 0.98);
}

TEST(Memory, CopiedPayloadChangesNoCount) {
  SmallJob job(2, 2, FabricKind::memory);
  job.collective(Func::all_reduce, 1 << 20);
  job.spec.fabric.payload = PayloadMode::copied;
  expect_ledger_as_planned(job, job.run());
}

TEST(Memory, AHostThatCannotKeepUpIsFoundOut) {
  // At dilation 1 the 64 ranks exchange tiny messages faster than one core can: the run must report
  // it.
  SmallJob job(32, 2, FabricKind::memory);
  job.spec.dilation = 1;
  job.spec.cluster.nic.latency = 1000;
  job.spec.cluster.intra_node.latency = 1000;
  for (int i = 0; i < 50; ++i) job.collective(Func::all_reduce, 64);
  const Fidelity f = job.run().fidelity;
  EXPECT_FALSE(f.faithful);
  EXPECT_NE(f.reason, "");
}

TEST(Memory, ComputeDelaysEndWhenTheyShouldAndChainWithoutDrift) {
  SmallJob job(1, 2, FabricKind::memory);
  job.spec.dilation = 1;
  for (int i = 0; i < 100; ++i) job.compute(kPicosPerMilli);
  const Result result = job.run();
  EXPECT_DOUBLE_EQ(result.iterations.at(0).seconds, 0.1);  // lateness does not accumulate
  EXPECT_GE(result.wall_seconds, 0.1);
}

TEST(Run, WarmUpIsNotCountedAndIterationsArrive) {
  struct Watch : Observer {
    std::vector<int> seen;
    void on_iteration(int index, const IterationReport&) override { seen.push_back(index); }
  } watch;
  SmallJob job(2, 2, FabricKind::memory);
  job.spec.run.warmup = 2;
  job.spec.run.iterations = 3;
  job.compute(kPicosPerMilli).collective(Func::all_reduce, 1000);
  const Result result = job.run(&watch);
  EXPECT_EQ(watch.seen, (std::vector<int>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(result.iterations.size(), 3u);
  expect_ledger_as_planned(job, result);
}

}  // namespace
}  // namespace ghostrank
