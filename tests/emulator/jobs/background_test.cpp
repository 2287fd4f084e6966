// Background traffic in virtual time: its cost to a step, and its bytes on every fabric.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

// Jitter varies the compute of 10 ms, not the rate.
TEST(Checkpoint, KeepsItsPaceWithJitter) {
  LoadedJob paced = job("[{pattern: checkpoint, bytes: 20000000, chunk: 1000000, rate: 2Gbps}]");
  paced.spec.run.jitter = 0.3;
  for (const double step : milliseconds(play(paced))) EXPECT_NEAR(step, 38, 0.01);
  const Workload workload = plan_workload(paced.spec);
  LoadedJob again = test::load_text(program_job(paced, workload, ProgramForm::yaml));
  again.spec.run.jitter = 0.3;
  for (const double step : milliseconds(play(again))) EXPECT_NEAR(step, 38, 0.01);
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
  // The ranks that train wait for it; the storage node's rank counts for nothing.
  for (const IterationReport& i : with.iterations)
    EXPECT_NEAR(i.exposed_comm_seconds, i.seconds - i.compute_seconds, 1e-5);
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

// ---- Among the ranks that train ----

// Nodes of one GPU that train 1 ms per step and reduce 4 bytes, on NICs of 1 GB/s without latency.
LoadedJob wide_job(const std::string& background, int nodes, const std::string& fabric,
                   const std::string& topology = "{kind: nonblocking}") {
  return test::load_text(
      "schema: ghostrank/job/1\n"
      "model: {kind: layers, name: one, layers: [{parameters: [1], forward_us: 400, "
      "backward_us: 600}]}\n"
      "cluster: {nodes: " +
      std::to_string(nodes) +
      ", gpus_per_node: 1, nics_per_node: 1, nic: {rate: 8Gbps, latency_us: 0}, topology: " +
      topology + "}\nfabric: " + fabric + "\nrun: {warmup: 2, iterations: 3, verify: " +
      (fabric.find("flow") == std::string::npos ? "true" : "false") +
      "}\nbackground: " + background + "\n");
}

constexpr const char* kLoggp = "{kind: virtual, network: loggp}";
constexpr const char* kFlow = "{kind: virtual, network: flow}";
constexpr const char* kPacket =
    "{kind: virtual, network: packet, queues: {congestion_control: none}}";

// Milliseconds of a step, which all take equally long.
void expect_step(const std::string& background, int nodes, double expected,
                 const std::string& topology = "{kind: nonblocking}") {
  for (const auto& [fabric, tolerance] :
       {std::pair{kLoggp, 0.001}, std::pair{kFlow, 0.005}, std::pair{kPacket, 0.01}}) {
    const Result result = play(wide_job(background, nodes, fabric, topology));
    ASSERT_EQ(result.iterations.size(), 3u);
    for (const double ms : milliseconds(result))
      EXPECT_NEAR(ms, expected, tolerance * expected) << background << ", " << fabric;
    if (result.verify) {
      EXPECT_EQ(result.verify->wrong_elements, 0u) << fabric;
    }
  }
}

// Three senders share the receiver's NIC; in a permutation, and between halves, every sender has a
// receiver for itself.
TEST(PatternsOfTraffic, BesideAStepCostWhatTheirBusiestNicTakesLonger) {
  expect_step("[{pattern: incast, bytes: 800000, chunk: 1000}]", 4, 2.4);
  expect_step("[{pattern: incast, fan_in: 1, bytes: 800000, chunk: 1000}]", 4, 1);
  expect_step("[{pattern: permutation, bytes: 2000000, chunk: 1000}]", 5, 2);
  expect_step("[{pattern: bisection, bytes: 2000000, chunk: 1000}]", 4, 2);
}

TEST(PatternsOfTraffic, ThatTrainingWaitsForAreAddedToTheStep) {
  expect_step("[{pattern: permutation, bytes: 2000000, chunk: 1000, blocking: true}]", 3, 3);
  expect_step("[{pattern: incast, bytes: 500000, chunk: 1000, blocking: true}]", 5, 3);
}

// Each leaf's one link upwards carries a quarter of its two NICs.
TEST(PatternsOfTraffic, ShareTheLinksBetweenLeaves) {
  expect_step("[{pattern: bisection, bytes: 1000000, chunk: 1000}]", 4, 4,
              "{kind: leaf_spine, leaves: 2, spines: 1, oversubscription: 4}");
}

// 20 messages of 100 KB, one every 0.4 ms: the last begins after 7.6 ms.
TEST(PatternsOfTraffic, KeepTheirPace) {
  for (const char* pattern : {"permutation", "bisection"})
    expect_step(
        "[{pattern: " + std::string(pattern) + ", bytes: 2000000, chunk: 100000, rate: 2Gbps}]", 2,
        7.7);
}

std::map<std::pair<int, int>, double> bytes_of_pairs(const Result& result) {
  std::map<std::pair<int, int>, double> bytes;
  for (const PairTraffic& p : result.pairs)  // answers have no bytes
    if (p.bytes > 0) bytes[{p.source_nic.value(), p.target_nic.value()}] += p.bytes;
  return bytes;
}

// Two of the three steps carry all; without background, ranks exchange what their gradients need.
TEST(PatternsOfTraffic, AreInTheLedgerToTheByteOnEveryFabric) {
  const std::string every = ", every: 3, over: 2, bytes: 300001, chunk: 100000}]";
  for (const char* pattern : {"incast", "permutation", "bisection"}) {
    const std::string list = "[{pattern: " + std::string(pattern) + every;
    auto expected = bytes_of_pairs(play(wide_job("[]", 4, kLoggp)));
    const LoadedJob planned = wide_job(list, 4, kLoggp);
    const Workload workload = plan_workload(planned.spec);
    for (const Group& group : workload.groups) {
      if (workload.group_names[group.kind] != pattern) continue;
      for (std::size_t i = 0; i < group.members.size(); ++i) {
        const int from = group.members[i].value(),
                  to = group.members[(i + 1) % group.members.size()].value();
        if (pattern != std::string("incast"))
          expected[{from, to}] += 300001 / 3.0;
        else if (i > 0)
          expected[{from, 0}] += 300001 / 3.0;
      }
    }
    for (const char* fabric : {kLoggp, kFlow, kPacket, "{kind: memory, payload: copied}"}) {
      const Result result = play(wide_job(list, 4, fabric));
      const auto found = bytes_of_pairs(result);
      ASSERT_EQ(found.size(), expected.size()) << pattern << ", " << fabric;
      for (const auto& [ends, bytes] : expected)
        EXPECT_NEAR(found.at(ends), bytes, 1e-6) << pattern << ", " << fabric;
      const bool named =
          std::any_of(result.collectives.begin(), result.collectives.end(),
                      [&](const CollectiveReport& row) { return row.group == pattern; });
      EXPECT_TRUE(named) << pattern << ", " << fabric;
      if (result.verify) {
        EXPECT_EQ(result.verify->wrong_elements, 0u) << fabric;
      }
    }
  }
}

TEST(PatternsOfTraffic, SurviveAProgramFile) {
  const LoadedJob first = wide_job(
      "[{pattern: incast, bytes: 1000000, every: 2}, {pattern: permutation, bytes: 20000000, "
      "every: "
      "3}, {pattern: bisection, rate: 1Gbps}]",
      4, "{kind: virtual}");
  const LoadedJob again =
      test::load_text(program_job(first, plan_workload(first.spec), ProgramForm::yaml));
  EXPECT_EQ(milliseconds(play(first)), milliseconds(play(again)));
}

// ---- Beside several jobs ----

// Two leaves of two nodes, joined by links as fast as a NIC, which is 1 GB/s. A job of a node on
// each reduces 10 MB per step, 10 ms, after a millisecond of compute; the other nodes are nobody's.
LoadedJob ring_beside(const std::string& background, const std::string& network) {
  return test::load_text(
      "schema: ghostrank/job/1\n"
      "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 8Gbps, latency_us: 0}, "
      "topology: {kind: leaf_spine, leaves: 2, spines: 1, oversubscription: 2}}\n"
      "fabric: {kind: virtual, network: " +
      network + "}\nrun: {warmup: 1, iterations: 3}\nbackground: " + background +
      "\njobs:\n  - name: a\n    nodes: [0, 2]\n    file: {model: {kind: layers, name: one, "
      "layers: [{parameters: [2500000], forward_us: 0, backward_us: 1000}]}}\n");
}

double ms(const std::vector<IterationReport>& iterations) { return mean_seconds(iterations) * 1e3; }

// A rate below its share takes just that from the ring; more takes half of the link.
TEST(BackgroundBesideJobs, SlowsARingThatSharesItsLinkAsFlows) {
  const auto expect = [](const std::string& background, double step, double of_traffic) {
    const Result result = play(ring_beside(background, "flow"));
    ASSERT_EQ(result.jobs.size(), 2u);
    EXPECT_NEAR(ms(result.jobs[0].alone), 11, 1e-3) << background;
    EXPECT_NEAR(ms(result.jobs[0].iterations), step, 1e-3 * step) << background;
    EXPECT_EQ(result.jobs[0].iterations.size(), 3u);
    EXPECT_EQ(result.jobs[1].name, "background");
    EXPECT_EQ(result.jobs[1].nodes, "1,3");
    EXPECT_NEAR(ms(result.jobs[1].iterations), of_traffic, 2e-2 * of_traffic) << background;
  };
  for (const std::string pattern : {"permutation", "bisection"}) {
    expect("[{pattern: " + pattern + ", rate: 2Gbps, chunk: 10000}]", 1 + 10 / 0.75, 1);
    expect("[{pattern: " + pattern + ", rate: 4Gbps, chunk: 10000}]", 1 + 10 / 0.5, 1);
    // Steps of 2 ms, so 2 Gbps again.
    expect("[{pattern: " + pattern + ", rate: 2Gbps, bytes: 500000, chunk: 10000}]", 1 + 10 / 0.75,
           2);
    // More than half: its messages flow one after the other, so it has no more than half.
    expect("[{pattern: " + pattern + ", rate: 8Gbps, chunk: 10000}]", 1 + 10 / 0.5, 2 * 21 / 22.0);
    // While the ring computes, 1 ms of its step, the traffic has the link, then half of it.
    expect("[{pattern: " + pattern + ", bytes: 20000000}]", 1 + 10 / 0.5, 20 + 20 - 2 * 1.0);
  }
  // One way only, into the first node; a ring is as fast as its slowest direction.
  expect("[{pattern: incast, rate: 2Gbps, chunk: 10000}]", 1 + 10 / 0.75, 1);
  expect("[{pattern: incast, rate: 2Gbps, chunk: 10000, every: 100000}]", 11, 1);
}

// Nobody waits for traffic whose step is longer than all that is measured.
TEST(BackgroundBesideJobs, IsNotWaitedFor) {
  const Result result =
      play(ring_beside("[{pattern: permutation, bytes: 1000000000, chunk: 10000000}]", "flow"));
  EXPECT_NEAR(ms(result.jobs[0].iterations), 21, 1e-2);
  EXPECT_EQ(result.jobs[0].iterations.size(), 3u);
  EXPECT_TRUE(result.jobs[1].iterations.empty());
  EXPECT_EQ(result.jobs[1].slowdown(), 0);  // unknown
}

TEST(BackgroundBesideJobs, SlowsARingAsMessagesAndAsPackets) {
  for (const std::string network :
       {"loggp", "packet, queues: {congestion_control: none}", "packet"}) {
    const Result result =
        play(ring_beside("[{pattern: permutation, rate: 4Gbps, chunk: 100000}]", network));
    EXPECT_GT(result.jobs[0].slowdown(), 1.02) << network;
    EXPECT_LT(result.jobs[0].slowdown(), 2.3) << network;
  }
}

// A job's own traffic plays alone and beside the others: its slow-down is about the others
// alone.
TEST(BackgroundOfOneOfSeveralJobs, IsPlayedAloneToo) {
  const Result result = play(test::load_text(
      "schema: ghostrank/job/1\n"
      "cluster: {nodes: 8, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 8Gbps, latency_us: 0}}\n"
      "fabric: {kind: virtual, network: flow}\nrun: {warmup: 2, iterations: 6}\n"
      "model: {kind: layers, name: one, layers: [{parameters: [1], forward_us: 400, backward_us: "
      "600}]}\n"
      "jobs:\n"
      "  - {name: a, nodes: 0-3, file: {background: [{pattern: incast, every: 3, bytes: "
      "1000000}]}}\n"
      "  - {name: b, nodes: 4-7, file: {}}\n"));
  const std::vector<double> expected{3, 1, 1, 3, 1, 1};  // the third step of all, warm-up included
  ASSERT_EQ(result.jobs.size(), 2u);
  const JobReport& a = result.jobs[0];
  ASSERT_EQ(a.iterations.size(), expected.size());
  ASSERT_EQ(a.alone.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(a.iterations[i].seconds * 1e3, expected[i], 0.01) << i;
    EXPECT_NEAR(a.alone[i].seconds * 1e3, expected[i], 0.01) << i;
  }
  EXPECT_EQ(a.slowdown(), 1);
  EXPECT_EQ(result.jobs[1].iterations.size(), 9u);  // within 10 ms
  for (const IterationReport& i : result.jobs[1].iterations) EXPECT_NEAR(i.seconds, 1e-3, 1e-6);
}

// Bytes are per step of the job that sends them, on the memory fabric too; with real data.
TEST(BackgroundBesideJobs, IsInTheLedgerToTheByteInMemoryToo) {
  const LoadedJob job = test::load_text(
      "schema: ghostrank/job/1\n"
      "cluster: {nodes: 6, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 8Gbps, latency_us: 0}}\n"
      "fabric: {kind: memory, payload: copied}\n"
      "scale: {dilation: 20}\n"
      "run: {warmup: 2, iterations: 2, verify: true, shards: 2}\n"
      "background: [{pattern: incast, bytes: 30001, chunk: 10000}]\n"
      "model: {kind: layers, name: one, layers: [{parameters: [1000], forward_us: 400, "
      "backward_us: 600}]}\n"
      "jobs:\n"
      "  - {name: a, nodes: [5, 1], file: {background: [{pattern: permutation, bytes: 5001}]}}\n");
  const Result result = play(job);
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  std::map<std::pair<int, int>, double> found;
  for (const PairTraffic& pair : result.pairs)
    if (pair.bytes > 0) found[{pair.source_nic.value(), pair.target_nic.value()}] += pair.bytes;
  const std::map<std::pair<int, int>, double> expected{{{5, 1}, 4000 + 5001},
                                                       {{1, 5}, 4000 + 5001},
                                                       {{2, 0}, 30001},
                                                       {{3, 0}, 30001},
                                                       {{4, 0}, 30001}};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(result.jobs[1].wire_bytes_per_iteration, 3 * 30001.0);
}

}  // namespace
}  // namespace ghostrank
