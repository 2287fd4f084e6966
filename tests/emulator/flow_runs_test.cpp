// Jobs whose calls travel as flows: beside the same jobs message by message, and closed forms where
// links are shared.
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::ledger_text;
using testing::SmallJob;

constexpr double kRate = 100e9;
constexpr std::uint64_t kCount = 250'000;
constexpr double kLatency = 6e-6, kSerial = kCount * 4 * 8 / kRate;

SmallJob job_of(int nodes, int gpus, NetworkModel network = NetworkModel::flow) {
  SmallJob job(nodes, gpus, FabricKind::virtual_time);
  job.spec.cluster.nic = {kRate, 6 * kPicosPerMicro};
  job.spec.fabric.network = network;
  return job;
}

TopologySpec leaf_spine(int leaves, int spines, double oversubscription) {
  TopologySpec spec;
  spec.kind = TopologySpec::Kind::leaf_spine;
  spec.leaves = leaves;
  spec.spines = spines;
  spec.oversubscription = oversubscription;
  return spec;
}

// Transfers (from, to), all at the same time.
SmallJob& with_sends(SmallJob& job, const std::vector<std::pair<int, int>>& pairs) {
  job.workload.roles.assign(job.workload.role_of.rows().size(), job.workload.roles[0]);
  for (const WorldRank r : job.workload.role_of.keys())
    job.workload.role_of[r] = static_cast<std::uint16_t>(r.value());
  for (const auto& [from, to] : pairs) {
    Op op;
    op.count = kCount;
    op.kind = Op::Kind::send;
    op.peer = to - from;
    job.workload.roles[from].iterations[0].streams[0].push_back(op);
    op.kind = Op::Kind::recv;
    op.peer = from - to;
    job.workload.roles[to].iterations[0].streams[0].push_back(op);
  }
  return job;
}

double seconds_of(const Result& result) { return result.iterations.at(0).seconds; }

// ---- Alone on an idle network ----

TEST(Flows, AloneTakeAsLongAsTheirMessagesAndCountThemAlike) {
  for (const char* library : {"generic", "gloo", "nccl-2.28", "openmpi-4.1"})
    for (const Func func : {Func::all_reduce, Func::all_gather, Func::reduce_scatter,
                            Func::broadcast, Func::all_to_all})
      for (const auto& [nodes, gpus] : {std::pair{5, 1}, std::pair{4, 2}})
        for (const std::uint64_t count : {7ull, 40'000ull, 3'000'000ull}) {
          if (library == std::string("gloo") && func == Func::reduce_scatter) continue;
          SmallJob flow = job_of(nodes, gpus);
          flow.spec.collectives.library = library;
          flow.collective(func, count);
          SmallJob loggp = flow;
          loggp.spec.fabric.network = NetworkModel::loggp;
          const Result a = flow.run(), b = loggp.run();
          EXPECT_NEAR(seconds_of(a), seconds_of(b), 0.001 * seconds_of(b))
              << library << ' ' << name_of(func) << ' ' << nodes << 'x' << gpus << ' ' << count;
          EXPECT_EQ(ledger_text(a), ledger_text(b)) << library << ' ' << name_of(func);
        }
}

TEST(Flows, OfTransfersAloneTakeAsLongAsTheirMessages) {
  for (const char* library : {"generic", "nccl-2.28"}) {
    SmallJob flow = job_of(4, 2);
    flow.spec.collectives.library = library;
    with_sends(flow, {{0, 2}, {3, 5}, {6, 1}, {2, 0}});
    SmallJob loggp = flow;
    loggp.spec.fabric.network = NetworkModel::loggp;
    const Result a = flow.run(), b = loggp.run();
    EXPECT_NEAR(seconds_of(a), seconds_of(b), 0.01 * seconds_of(b)) << library;
    EXPECT_EQ(ledger_text(a), ledger_text(b)) << library;
  }
}

// Both send before they receive: a sender does not wait for its receiver.
TEST(Flows, LetAnEagerSenderGoOn) {
  SmallJob job = job_of(2, 1);
  for (const Op::Kind kind : {Op::Kind::send, Op::Kind::recv}) {
    Op op;
    op.count = kCount;
    op.kind = kind;
    op.peer = 1;
    job.program().streams[0].push_back(op);
  }
  EXPECT_NEAR(seconds_of(job.run()), kLatency + kSerial, 1e-11);
}

// ---- Shared links ----

TEST(Flows, ShareALinkFairly) {
  SmallJob job = job_of(4, 1);
  job.spec.cluster.topology = leaf_spine(2, 1, 2);
  const Result result = with_sends(job, {{0, 2}, {1, 3}}).run();
  EXPECT_NEAR(seconds_of(result), kLatency + 2 * kSerial, 1e-10);
  ASSERT_TRUE(result.network);
  EXPECT_EQ(result.network->model, "flow");
  EXPECT_NEAR(result.network->hottest[0].utilisation, 2 * kSerial / (kLatency + 2 * kSerial), 1e-6);
  EXPECT_EQ(result.network->tiers[0].messages, 2);
}

TEST(Flows, OfAnIncastShareTheReceiver) {
  for (const double oversubscription : {1.0, 8.0, 16.0}) {
    SmallJob job = job_of(16, 1);
    job.spec.cluster.topology = leaf_spine(2, 1, oversubscription);
    std::vector<std::pair<int, int>> pairs;
    for (int r = 0; r < 8; ++r) pairs.push_back({r, 8 + r});
    const double permutation = seconds_of(with_sends(job, pairs).run());
    EXPECT_NEAR(permutation, kLatency + std::max(1.0, oversubscription) * kSerial, 1e-9);
  }
}

// Message by message, a link that two rings cross serves them in turn; as flows each has half. Both
// rings take as long.
TEST(Flows, OfARingHaveTheRateOfItsSlowestEdge) {
  for (const double oversubscription : {4.0, 16.0}) {
    std::map<NetworkModel, double> seconds;
    for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::flow}) {
      SmallJob job = job_of(8, 1, network);
      job.spec.cluster.topology = leaf_spine(2, 1, oversubscription);
      job.spec.cluster.nic.latency = 1000;
      job.spec.collectives.algorithm(Func::all_reduce) = "ring";
      job.collective(Func::all_reduce, 64 * kCount);
      const Result result = job.run();
      seconds[network] = seconds_of(result);
      if (network == NetworkModel::flow) {
        EXPECT_EQ(result.network->fluids, 1u);
      }
    }
    // The fill of the slow edge's pipeline: a step per edge at the most.
    EXPECT_LE(seconds[NetworkModel::flow], seconds[NetworkModel::loggp] * 1.01);
    EXPECT_GE(seconds[NetworkModel::flow], seconds[NetworkModel::loggp] * 0.75);
  }
}

TEST(Flows, AreTheSameEveryTime) {
  SmallJob job = job_of(8, 2);
  job.spec.cluster.topology = leaf_spine(4, 2, 4);
  job.spec.run.jitter = 0.1;
  job.spec.run.iterations = 3;
  job.compute(5'000'000).collective(Func::all_reduce, 100'000).collective(Func::all_to_all, 5000);
  const Result a = job.run(), b = job.run();
  for (std::size_t i = 0; i < a.iterations.size(); ++i)
    EXPECT_EQ(a.iterations[i].seconds, b.iterations[i].seconds);
  EXPECT_EQ(ledger_text(a), ledger_text(b));
}

TEST(Flows, OfDifferentMembersWaitForEachOther) {
  SmallJob job = job_of(2, 1);
  with_sends(job, {});
  job.workload.roles[0].iterations[0].streams[0].push_back({.kind = Op::Kind::recv, .peer = 1});
  const Result result = job.run();
  EXPECT_NE(result.interrupted.find("waits for the other members"), std::string::npos)
      << result.interrupted;
}

}  // namespace
}  // namespace ghostrank
