// Several jobs on one fabric: what they take from each other where they share links, that they take
// nothing where they do not, and which of their iterations are measured.
#include "emulator/several_jobs.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/control/control.h"
#include "profiles/error.h"
#include "tests/emulator/jobs/several_jobs.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::compress_by;
using testing::Placed;
using testing::seconds_of;
using testing::SmallJob;
using testing::together;

constexpr double kRate = 100e9;
constexpr std::uint64_t kCount = 250'000;
constexpr double kSerial = kCount * 4 * 8 / kRate;

// Two leaves of two nodes with a NIC each, whose links carry one NIC's rate.
SmallJob fabric(NetworkModel network) {
  SmallJob job(4, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {kRate, 0};
  job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
  job.spec.cluster.topology.leaves = 2;
  job.spec.cluster.topology.spines = 1;
  job.spec.cluster.topology.oversubscription = 2;
  job.spec.fabric.network = network;
  return job;
}

SmallJob all_reduce_of(int nodes, int gpus = 1, Picoseconds compute = 0) {
  SmallJob job(nodes, gpus, FabricKind::virtual_time);
  if (compute > 0) job.compute(compute);
  job.collective(Func::all_reduce, kCount);
  return job;
}

// A ring of two nodes sends and receives the tensor once: alone at the NICs' rate, and beside
// another across the same link at half of it.
TEST(SeveralJobs, ShareALinkFairlyAsFlows) {
  SmallJob job = together(fabric(NetworkModel::flow),
                          {{all_reduce_of(2), {0, 2}}, {all_reduce_of(2), {1, 3}}});
  job.spec.run.iterations = 3;
  const Result result = job.run();
  ASSERT_EQ(result.jobs.size(), 2u);
  for (const JobReport& one : result.jobs) {
    EXPECT_NEAR(mean_seconds(one.alone), kSerial, 1e-11) << one.name;
    EXPECT_NEAR(mean_seconds(one.iterations), 2 * kSerial, 1e-11) << one.name;
    EXPECT_NEAR(one.slowdown(), 2, 1e-6) << one.name;
    EXPECT_EQ(one.iterations.size(), 3u);
    EXPECT_EQ(one.wire_bytes_per_iteration, 2.0 * kCount * 4);  // each node sends the tensor once
  }
  EXPECT_EQ(result.jobs[0].nodes, "0,2");
  EXPECT_EQ(result.wire_bytes_per_iteration, 4.0 * kCount * 4);
  EXPECT_EQ(seconds_of(result.iterations), seconds_of(result.jobs[0].iterations));
}

// Messages and packets take turns at the link: as slow, but for the first of them.
TEST(SeveralJobs, ShareALinkAsMessagesAndAsPackets) {
  for (const NetworkModel network : {NetworkModel::loggp, NetworkModel::packet}) {
    SmallJob job =
        together(fabric(network), {{all_reduce_of(2), {0, 2}}, {all_reduce_of(2), {1, 3}}});
    job.spec.cluster.nic.latency = kPicosPerMicro;
    job.spec.run.iterations = 4;
    const Result result = job.run();
    double slowdowns = 0;
    for (const JobReport& one : result.jobs) slowdowns += one.slowdown();
    EXPECT_GT(slowdowns / 2, 1.5) << static_cast<int>(network);
    EXPECT_LT(slowdowns / 2, 2.2) << static_cast<int>(network);
  }
}

// By number each job has a leaf for itself; by the file's places each has a node on either leaf.
TEST(SeveralJobs, TakeThePlacesOfAFileOnEveryFabric) {
  const auto play = [](const SmallJob& on, const std::vector<int>& places) {
    SmallJob job = together(on, {{all_reduce_of(2), {0, 1}}, {all_reduce_of(2), {2, 3}}});
    job.spec.cluster.nic.latency = kPicosPerMicro;
    job.spec.cluster.topology.placement = TopologySpec::Placement::file;
    job.spec.cluster.topology.place_of_node = places;
    job.spec.run.iterations = 3;
    return job.run();
  };
  const auto between_leaves = [](const Result& result) {
    double bytes = 0;
    for (const LinkTier& tier : result.network->tiers)
      if (tier.name == "leaf-spine") bytes += tier.bytes;
    return bytes;
  };
  SmallJob memory = fabric(NetworkModel::loggp);
  memory.spec.fabric.kind = FabricKind::memory;
  memory.spec.dilation = 20;
  for (const SmallJob& on : {fabric(NetworkModel::loggp), fabric(NetworkModel::flow),
                             fabric(NetworkModel::packet), memory}) {
    const Result apart = play(on, {0, 1, 2, 3}), across = play(on, {0, 2, 1, 3});
    ASSERT_TRUE(apart.network && across.network);
    EXPECT_EQ(between_leaves(apart), 0);
    EXPECT_GT(between_leaves(across), 4.0 * kCount);
    if (on.spec.fabric.kind == FabricKind::memory) continue;  // its times are this machine's
    EXPECT_NEAR(apart.jobs[0].slowdown(), 1, 1e-3);
    EXPECT_GT(across.jobs[0].slowdown() + across.jobs[1].slowdown(), 3);
  }
}

TEST(SeveralJobs, ThatShareNoLinkAreAsFastAsAlone) {
  for (const NetworkModel network :
       {NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet}) {
    SmallJob a = all_reduce_of(2, 1, 3 * kPicosPerMicro), b = all_reduce_of(2);
    SmallJob job = together(fabric(network), {{a, {0, 1}}, {b, {2, 3}}});
    job.spec.cluster.nic.latency = kPicosPerMicro;
    job.spec.run.iterations = 3;
    job.spec.run.jitter = 0.1;
    const Result result = job.run();
    for (const JobReport& one : result.jobs) {
      EXPECT_EQ(one.slowdown(), 1) << one.name;
      EXPECT_EQ(seconds_of(one.iterations), seconds_of(one.alone)) << one.name;
    }
    // The first job's ranks have the numbers that they have in a job of its own.
    SmallJob own = a;
    own.spec = job.spec;
    own.spec.jobs.clear();
    own.spec.cluster.node_of_block.clear();
    EXPECT_EQ(seconds_of(own.run().iterations), seconds_of(result.jobs[0].iterations));
  }
}

// Which packets a queue marks does not depend on the connections of others.
TEST(SeveralJobs, ThatShareNoPortGetTheSameMarksAsAlone) {
  SmallJob cluster(12, 1, FabricKind::virtual_time);
  cluster.spec.cluster.nic = {kRate, kPicosPerMicro};
  cluster.spec.fabric.network = NetworkModel::packet;
  SmallJob incast(8, 1, FabricKind::virtual_time);
  testing::with_sends(incast, {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}});
  SmallJob job =
      together(cluster, {{all_reduce_of(4), {0, 1, 2, 3}}, {incast, {4, 5, 6, 7, 8, 9, 10, 11}}});
  job.spec.run.iterations = 4;
  const Result result = job.run();
  std::uint64_t marks = 0;
  for (const LinkTier& tier : result.network->tiers) marks += tier.queue->marks;
  EXPECT_GT(marks, 0u);
  for (const JobReport& one : result.jobs)
    EXPECT_EQ(seconds_of(one.iterations), seconds_of(one.alone)) << one.name;
}

// The job with short steps goes on while the other is measured, and all of that is measured.
TEST(SeveralJobs, AreMeasuredUntilAllHaveEndedWhatWasAsked) {
  SmallJob slow(2, 1, FabricKind::virtual_time), fast = slow;
  slow.compute(1000 * kPicosPerMicro);
  fast.compute(70 * kPicosPerMicro);
  SmallJob job = together(fabric(NetworkModel::flow), {{fast, {0, 1}}, {slow, {2, 3}}});
  job.spec.run.iterations = 2;
  job.spec.run.warmup = 1;
  const Result result = job.run();
  EXPECT_EQ(result.jobs[0].iterations.size(), 28u);  // 2000 / 70
  EXPECT_EQ(result.jobs[1].iterations.size(), 2u);
  EXPECT_EQ(result.iterations_asked, 2);
  for (const JobReport& one : result.jobs) EXPECT_DOUBLE_EQ(one.slowdown(), 1) << one.name;
}

// Iterations of each job have programs of their own, in an order of their own.
TEST(SeveralJobs, KeepTheirOrdersOfPrograms) {
  SmallJob a(2, 1, FabricKind::virtual_time), b = a;
  a.compute(10 * kPicosPerMicro);
  b.compute(20 * kPicosPerMicro);
  Program longer = b.program();
  longer.streams[0] = OpList{Op{.duration = 50 * kPicosPerMicro}};
  b.workload.roles[0].iterations.push_back(longer);
  b.workload.order = {0, 1};
  b.workload.cycle = 2;
  SmallJob job = together(fabric(NetworkModel::loggp), {{a, {0, 1}}, {b, {3, 2}}});
  job.spec.run.iterations = 4;
  const Result result = job.run();
  EXPECT_EQ(result.jobs[0].iterations.size(), 14u);
  const std::vector<double> seconds = seconds_of(result.jobs[1].iterations);
  ASSERT_EQ(seconds.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(seconds[i], i % 2 == 0 ? 20e-6 : 50e-6);
}

// A rank without work does not run ahead of its job, nor does one that nobody answers.
TEST(SeveralJobs, MayHaveRanksThatTakeNoTime) {
  SmallJob a(3, 1, FabricKind::virtual_time), b = all_reduce_of(1, 1, 10 * kPicosPerMicro);
  a.workload.roles.assign(3, a.workload.roles[0]);
  for (int r = 0; r < 3; ++r) a.workload.role_of[WorldRank(r)] = static_cast<std::uint16_t>(r);
  const auto transfer = [&](int rank, Op::Kind kind, int peer) {
    Op op;
    op.kind = kind;
    op.count = kCount;
    op.peer = peer;
    a.workload.roles[rank].iterations[0].streams[0].push_back(op);
  };
  transfer(0, Op::Kind::send, 1);
  transfer(1, Op::Kind::recv, -1);
  SmallJob job = together(fabric(NetworkModel::loggp), {{a, {0, 1, 2}}, {b, {3}}});
  job.spec.run.iterations = 3;
  for (const JobReport& one : job.run().jobs) {
    EXPECT_GE(one.iterations.size(), 3u);
    EXPECT_NEAR(one.slowdown(), 1, 1e-9);
  }
}

// Real data, engine threads, nodes in any order and nodes without a job.
TEST(SeveralJobs, AreVerifiedInMemory) {
  SmallJob cluster(6, 2, FabricKind::memory);
  SmallJob job =
      together(cluster, {{all_reduce_of(2, 2), {5, 0}}, {all_reduce_of(3, 2), {4, 1, 3}}});
  job.spec.run.verify = true;
  job.spec.run.shards = 3;
  job.spec.run.iterations = 3;
  const Result result = job.run();
  ASSERT_TRUE(result.verify.has_value());
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  EXPECT_GE(result.verify->checked_elements, 3u * (4 + 6) * kCount);
  EXPECT_EQ(result.jobs[0].nodes, "0,5");
  for (const JobReport& one : result.jobs) {
    EXPECT_GE(one.iterations.size(), 3u);
    EXPECT_GT(one.slowdown(), 0);
  }
  for (const PairTraffic& pair : result.pairs)
    EXPECT_TRUE(pair.source_nic.value() / 2 != 2 && pair.target_nic.value() / 2 != 2);
}

// A job of short steps plays more of them than were planned while the other one still measures; its
// gradients stay those of the last planned step, as do the sizes of its payloads, whichever of the
// jobs it is.
TEST(SeveralJobs, RepeatTheLastPlannedStepOfDriftingGradients) {
  SmallJob brief(2, 1, FabricKind::virtual_time), slow = all_reduce_of(2, 1, 10 * kPicosPerMilli);
  brief.compute(kPicosPerMilli).collective(Func::all_reduce, 10'000, DataType::float32, 0, 1);
  brief.spec.gradients.laws.front().drift.scale = 0.9;
  brief.spec.run.verify = true;
  brief.spec.run.warmup = 1;
  brief.spec.run.iterations = 2;
  compress_by("threshold", {.threshold = 0.001}, brief);
  const Placed first{brief, {0, 1}}, other{slow, {2, 3}};
  for (const auto& jobs : {std::vector{first, other}, std::vector{other, first}}) {
    SmallJob job = together(SmallJob(4, 1, FabricKind::virtual_time), jobs);
    job.spec.run = brief.spec.run;
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    EXPECT_GE(result.verify->checked_elements, 10u * 2 * 10'000);
  }
}

// A job beside others sends what it sends alone: by its own library, to its own servers, in its own
// tensors, compressed or not.
TEST(SeveralJobs, HaveLibrariesSchemesAndTensorsOfTheirOwn) {
  SmallJob nccl = all_reduce_of(2, 2), served = all_reduce_of(2, 2), topk(2, 2, FabricKind::memory);
  nccl.spec.collectives.library = "nccl-2.28";
  served.program().streams[0] = {};
  served.collective(Func::all_reduce, kCount, DataType::float32, 0, 1);
  served.spec.collectives.algorithm(Func::all_reduce) = "parameter_server";
  served.spec.collectives.at_servers.big_array = 1000;  // elements; larger tensors have all servers
  served.spec.cluster.servers.count = 2;
  topk.collective(Func::all_reduce, 10'000, DataType::float32, 0, 1);
  topk.spec.collectives.library = "gloo";
  compress_by("topk", {.ratio = 0.01}, topk);
  std::vector<Placed> jobs{{nccl, {4, 1}}, {served, {0, 5}}, {topk, {3, 2}}};
  SmallJob job = together(SmallJob(6, 2, FabricKind::memory), jobs);
  job.spec.run.verify = true;
  const Result result = job.run();
  ASSERT_EQ(result.verify->wrong_elements, 0u);
  std::set<std::string> algorithms;
  for (const CollectiveReport& row : result.collectives)
    algorithms.insert(row.group + " " + row.algorithm);
  EXPECT_TRUE(algorithms.contains("b/all parameter_server"));
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    SmallJob alone = jobs[j].job;
    alone.spec.run = job.spec.run;
    alone.spec.fabric.kind = FabricKind::memory;
    const Result own = alone.run();
    const JobReport& beside = result.jobs[j];
    EXPECT_EQ(beside.wire_bytes_per_iteration, own.wire_bytes_per_iteration) << beside.name;
    EXPECT_EQ(beside.messages_per_iteration, own.messages_per_iteration) << beside.name;
    EXPECT_EQ(beside.compression.has_value(), j == 2);
  }
  EXPECT_EQ(result.jobs[2].compression->payload_bytes, 100u * 8);  // a value and its index
  // The job's servers are the nodes after all others, and nobody else's.
  std::set<std::string> servers;
  for (const ServerReport& server : result.servers) servers.insert(server.name);
  EXPECT_EQ(servers, (std::set<std::string>{"n6", "n7"}));
  // In every iteration of that job each of its nodes sends them the tensor.
  double received = 0;
  for (const ServerReport& server : result.servers) received += server.rx_bytes;
  EXPECT_NEAR(received, 2.0 * kCount * 4, 1000);  // plus the names of its parts
}

// Every job has its own settings of the switch, on whose memory they agree; the outer file has
// none.
TEST(SeveralJobs, ShareTheMemoryOfASwitch) {
  const auto play = [](int memory_slots) {
    SmallJob one = all_reduce_of(2);
    one.spec.collectives.algorithm(Func::all_reduce) = "switchml";
    one.spec.collectives.in_switch.slots = 512;
    one.spec.collectives.in_switch.memory_slots = memory_slots;
    return together(fabric(NetworkModel::loggp), {{one, {0, 1}}, {one, {2, 3}}}).run();
  };
  EXPECT_EQ(play(1024).interrupted, "");
  EXPECT_THROW(play(1023), Error);
}

// A job's colocated servers run on its own nodes.
TEST(SeveralJobs, MayHaveServersBesideTheirGpus) {
  SmallJob a = all_reduce_of(2), b = all_reduce_of(2);
  for (SmallJob* job : {&a, &b}) {
    job->program().streams[0] = {};
    job->collective(Func::all_reduce, kCount, DataType::float32, 0, 1);
    job->spec.collectives.algorithm(Func::all_reduce) = "parameter_server";
    job->spec.cluster.servers.count = 1;
  }
  a.spec.cluster.servers.colocated = true;
  SmallJob job = together(SmallJob(5, 1, FabricKind::virtual_time), {{a, {3, 1}}, {b, {0, 4}}});
  std::vector<std::string> servers;
  for (const ServerReport& server : job.run().servers) servers.push_back(server.name);
  EXPECT_EQ(servers, (std::vector<std::string>{"n3", "n5"}));
}

// Messages of a few bytes follow each other in less time than any machine needs to hand one over.
TEST(SeveralJobs, AreNotFaithfulWhereOneIsNot) {
  SmallJob calm(2, 1, FabricKind::memory), hasty = calm;
  calm.compute(5 * kPicosPerMilli);
  hasty.collective(Func::all_reduce, 16);
  SmallJob cluster(4, 1, FabricKind::memory);
  cluster.spec.cluster.nic = {kRate, 0};
  SmallJob job = together(cluster, {{calm, {0, 1}}, {hasty, {2, 3}}});
  job.spec.dilation = 1;
  const Result result = job.run();
  EXPECT_FALSE(result.fidelity.faithful);
  EXPECT_NE(result.fidelity.reason.find("job b alone: lateness on the critical path"),
            std::string::npos)
      << result.fidelity.reason;
  EXPECT_EQ(std::ranges::count(result.fidelity.valid_for, "step_time"), 0);
  EXPECT_TRUE(std::ranges::any_of(result.fidelity.figures, [](const Figure& figure) {
    return figure.name == "jobs.b.slowdown";
  }));
}

// While one plays alone, the threads of the other end at once. Computes last longer than a thread
// waits for a core.
TEST(SeveralJobs, AreNotBusyWhereTheyRest) {
  SmallJob calm(2, 1, FabricKind::memory);
  calm.compute(50 * kPicosPerMilli);
  SmallJob job = together(SmallJob(4, 1, FabricKind::memory), {{calm, {0, 1}}, {calm, {2, 3}}});
  job.spec.dilation = 1;
  job.spec.run.shards = 2;
  EXPECT_LT(job.run().fidelity.loop_busy, 0.9);
}

// Stops the run when so many iterations have ended, those of resting jobs counted.
class StopsAt final : public Control {
 public:
  explicit StopsAt(int iterations) : left_(iterations), to_(Control::meet(World{})) {}
  int left() const { return left_; }

  const World& world() const override { return to_->world(); }
  std::vector<std::string> all_gather(std::string_view blob) override {
    return to_->all_gather(blob);
  }
  std::int64_t clock_offset_ns() const override { return to_->clock_offset_ns(); }
  void publish(std::string_view blob) override {
    to_->publish(blob);
    if (--left_ == 0) to_->request_stop(Stop::interrupted);
  }
  std::vector<std::pair<int, std::string>> take_published() override {
    return to_->take_published();
  }
  void tell(std::uint32_t word) override { to_->tell(word); }
  std::uint32_t told() const noexcept override { return to_->told(); }
  void request_stop(Stop why) noexcept override { to_->request_stop(why); }
  void fail(std::string reason, Stop why) override { to_->fail(std::move(reason), why); }
  Stop stop() const noexcept override { return to_->stop(); }
  std::string stop_reason() const override { return to_->stop_reason(); }
  void on_stop(std::function<void()> wake) override { to_->on_stop(std::move(wake)); }
  void close() override { to_->close(); }

 private:
  int left_;
  std::unique_ptr<Control> to_;
};

// What ended before the run was stopped is in the result, and in its own column.
TEST(SeveralJobs, KeepWhatEndedBeforeTheyWereStopped) {
  SmallJob fast(2, 1, FabricKind::virtual_time), slow = fast;
  fast.compute(70 * kPicosPerMicro);
  slow.compute(1000 * kPicosPerMicro);
  SmallJob job = together(fabric(NetworkModel::flow), {{fast, {0, 1}}, {slow, {2, 3}}});
  job.spec.run.iterations = 2;
  constexpr int kNever = 1'000'000;
  StopsAt never(kNever);
  ASSERT_EQ(job.run(never).interrupted, "");
  const int all = kNever - never.left();
  std::set<std::string> seen;
  for (int n = 1; n <= all; n += n < all - 3 ? 3 : 1) {
    StopsAt control(n);
    const Result result = job.run(control);
    EXPECT_NE(result.interrupted, "");
    ASSERT_EQ(result.jobs.size(), 2u);
    const auto& [a, b] = std::tie(result.jobs[0], result.jobs[1]);
    EXPECT_EQ(result.iterations.size(), a.iterations.size());
    for (const IterationReport& one : a.alone) EXPECT_DOUBLE_EQ(one.seconds, 70e-6);
    for (const IterationReport& one : b.alone) EXPECT_DOUBLE_EQ(one.seconds, 1e-3);
    for (const JobReport* one : {&a, &b})
      EXPECT_DOUBLE_EQ(one->slowdown(), one->iterations.empty() ? 0 : 1) << n;
    if (b.alone.empty()) {
      seen.insert("a alone");
      EXPECT_TRUE(a.iterations.empty() && b.iterations.empty());
    } else if (a.iterations.empty()) {
      seen.insert("both alone");
      EXPECT_EQ(a.alone.size(), 2u);
      EXPECT_TRUE(b.iterations.empty());
    } else {
      seen.insert(n == all ? "a again" : "together");
      EXPECT_GE(a.alone.size(), 2u);
      EXPECT_EQ(b.alone.size(), 2u);
      if (n < all) continue;
      EXPECT_EQ(a.iterations.size(), 28u);
      EXPECT_EQ(b.iterations.size(), 2u);
    }
  }
  EXPECT_EQ(seen, (std::set<std::string>{"a alone", "both alone", "together", "a again"}));
}

TEST(SeveralJobs, RefuseStepsThatTakeNoTime) {
  SmallJob idle(2, 1, FabricKind::virtual_time);
  SmallJob job =
      together(fabric(NetworkModel::loggp), {{all_reduce_of(2), {0, 1}}, {idle, {2, 3}}});
  EXPECT_THROW(job.run(), Error);
}

}  // namespace
}  // namespace ghostrank
