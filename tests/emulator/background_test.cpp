// Background traffic in virtual time: its cost to a step.
#include <gtest/gtest.h>

#include "profiles/load/load.h"
#include "profiles/load/program_file.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using testing::play;

// Two nodes of one GPU that train 10 ms per step and reduce 4 bytes, and one storage node. Each has
// a NIC of 1 GB/s without latency.
LoadedJob job(const std::string& background, const std::string& storage = "1") {
  return test::load_text(
      "schema: ghostrank/job/1\n"
      "model: {kind: layers, name: one, layers: [{parameters: [1], forward_us: 4000, "
      "backward_us: 6000}]}\n"
      "cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1, storage_nodes: " +
      storage +
      ", nic: {rate: 8Gbps, latency_us: 0}}\n"
      "fabric: {kind: virtual}\nrun: {warmup: 1, iterations: 6}\n"
      "background: " +
      background + "\n");
}

std::vector<double> milliseconds(const Result& result) {
  std::vector<double> out;
  for (const IterationReport& i : result.iterations) out.push_back(i.seconds * 1e3);
  return out;
}

void expect_steps(const std::string& background, const std::vector<double>& expected) {
  const std::vector<double> steps = milliseconds(play(job(background)));
  ASSERT_EQ(steps.size(), expected.size());
  for (std::size_t i = 0; i < steps.size(); ++i)
    EXPECT_NEAR(steps[i], expected[i], 0.01) << background << ", step " << i;
}

// 20,000,000 bytes into the one NIC of the storage node take 20 ms. The first step is a warm-up.
TEST(Checkpoint, BesideAStepCostsWhatItTakesLonger) {
  expect_steps("[{pattern: checkpoint, every: 3, bytes: 20000000}]", {10, 20, 10, 10, 20, 10});
}

TEST(Checkpoint, ThatTrainingWaitsForIsAddedToTheStep) {
  expect_steps("[{pattern: checkpoint, every: 3, bytes: 20000000, blocking: true}]",
               {10, 30, 10, 10, 30, 10});
}

TEST(Checkpoint, OverTwoStepsHidesBehindBoth) {
  expect_steps("[{pattern: checkpoint, every: 3, over: 2, bytes: 20000000}]",
               {10, 10, 10, 10, 10, 10});
}

// Each rank hands over 10 chunks of 1 MB, one every 4 ms: the last begins after 36 ms.
TEST(Checkpoint, KeepsItsPace) {
  expect_steps("[{pattern: checkpoint, every: 3, bytes: 20000000, chunk: 1000000, rate: 2Gbps}]",
               {10, 38, 10, 10, 38, 10});
}

TEST(DataLoading, OfEveryStepIsServedWithinIt) {
  expect_steps("[{pattern: data, bytes: 4000000, chunk: 10000}]", {10, 10, 10, 10, 10, 10});
  expect_steps("[{pattern: data, bytes: 8000000, chunk: 10000}]", {16, 16, 16, 16, 16, 16});
}

TEST(Background, IsNoComputeAndNoRankThatTrains) {
  const Result with = play(job("[{pattern: checkpoint, bytes: 20000000}]"));
  const Result without = play(job("[]", "0"));
  EXPECT_EQ(with.ranks, without.ranks);
  EXPECT_DOUBLE_EQ(with.iterations[0].compute_seconds, without.iterations[0].compute_seconds);
}

TEST(Background, IsInTheLedgerToTheByte) {
  const Result result = play(job("[{pattern: checkpoint, every: 2, bytes: 20000001}]"));
  double bytes = 0;
  for (const PairTraffic& pair : result.pairs)
    if (pair.target_nic == Nic(2)) bytes += pair.bytes;  // into the storage node
  EXPECT_DOUBLE_EQ(bytes, 2 * 10000001 / 2.0);           // per iteration; only every other one
}

TEST(Background, SurvivesAProgramFile) {
  const LoadedJob first = job(
      "[{pattern: data, bytes: 1000}, {pattern: checkpoint, every: 3, over: 2, bytes: 20000000}]");
  const Workload workload = plan_workload(first.spec);
  const LoadedJob again = test::load_text(program_job(first, workload, ProgramForm::yaml));
  EXPECT_EQ(milliseconds(play(first)), milliseconds(play(again)));
}

}  // namespace
}  // namespace ghostrank
