// Calls that a rank starts together, as those of one ncclGroup: what they send, whether the sums
// are right, and which of them share a channel.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "collectives/nccl/group.h"
#include "emulator/estimate/call_times.h"
#include "emulator/estimate/step_estimate.h"
#include "emulator/traffic/schedules.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

struct CallOf {
  Func func;
  std::uint64_t count;
};

Op op_of(const CallOf& call) {
  Op op;
  op.kind = Op::Kind::collective;
  op.func = call.func;
  op.count = call.count;
  return op;
}

// The calls, together or one after the other.
SmallJob job_of(int nodes, int gpus, const std::vector<CallOf>& calls, bool together,
                const char* library = "nccl-2.28") {
  SmallJob job(nodes, gpus, FabricKind::virtual_time);
  job.spec.collectives.library = library;
  job.spec.cluster.nic = {400e9, 2 * kPicosPerMicro};
  job.spec.cluster.intra_node = {3600e9, kPicosPerMicro};
  std::vector<Op> ops;
  for (const CallOf& call : calls) ops.push_back(op_of(call));
  if (together) make_launch(ops, job.workload.launches);
  for (const Op& op : ops) job.program().streams[0].push_back(op);
  return job;
}

double seconds_of(const SmallJob& job) {
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  return result.iterations.empty() ? 0 : result.iterations[0].seconds;
}

double estimate_of(const SmallJob& job) {
  return seconds(StepEstimator().estimate(job.spec, job.workload).step);
}

const std::vector<CallOf> kThree{
    {Func::all_reduce, 300'000}, {Func::reduce_scatter, 50'001}, {Func::all_reduce, 20'000}};

// Rank 0 sends a short and a long message together; rank 1 computes between the two.
TEST(Together, StartsTheFirstCallFirst) {
  SmallJob job(2, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {10e9, kPicosPerMicro};
  job.workload.roles.push_back(job.workload.roles[0]);
  job.workload.role_of[WorldRank(1)] = 1;
  Op send, recv, compute;
  send.kind = Op::Kind::send, send.peer = 1, send.count = 1;
  recv.kind = Op::Kind::recv, recv.peer = -1, recv.count = 1;
  compute.duration = 2 * kPicosPerMilli;
  std::vector<Op> sends{send, send};
  sends[1].count = 1'000'000;  // 3.2 ms
  make_launch(sends, job.workload.launches);
  OpList& sender = job.workload.roles[0].iterations[0].streams[0];
  OpList& receiver = job.workload.roles[1].iterations[0].streams[0];
  for (const Op& op : sends) sender.push_back(op);
  receiver.push_back(recv);
  receiver.push_back(compute);
  recv.count = 1'000'000;
  receiver.push_back(recv);
  EXPECT_NEAR(seconds_of(job), 3.201e-3, 0.01e-3);
}

TEST(Together, SendsWhatTheGroupsPlanSays) {
  for (const char* library : {"nccl-2.28", "nccl-2.30"}) {
    const SmallJob job = job_of(4, 1, kThree, true, library);
    const Cluster cluster(job.spec, job.workload, 1);
    const Schedules schedules(job.spec, job.workload, cluster);
    Communicator comm;
    comm.node_of = {0, 1, 2, 3};
    comm.gpu_of = {0, 0, 0, 0};
    comm.channels = 0;
    comm.machine = cluster.machine(0);
    std::vector<Collective> calls;
    for (const Op& op : job.workload.launches.at(0)) calls.push_back(collective_of({}, op, 4));
    const auto version =
        library == std::string("nccl-2.28") ? NcclVersion::v2_28 : NcclVersion::v2_30;
    const NcclGroupPlan plan = nccl_group_plan(version, calls, comm);
    std::uint64_t shared = 0;
    for (std::size_t turn = 0; turn < plan.order.size(); ++turn) {
      const Op& op = job.workload.roles[0].iterations[0].streams[0][plan.order[turn]];
      const Schedule& schedule = *schedules.get(0, op).schedule;
      EXPECT_EQ(schedule.turn(), static_cast<int>(turn));
      EXPECT_EQ(schedule.played(), plan.plans[turn].name());
      ASSERT_EQ(schedule.actor(0, 0).channel, plan.plans[turn].split.first);
      shared += static_cast<std::uint64_t>(plan.plans[turn].split.channels);
    }
    EXPECT_GT(shared, static_cast<std::uint64_t>(plan.plans[0].channels)) << "none share a channel";
    const Result result = job.run();
    const TrafficPlan traffic = plan_traffic(job.spec, job.workload);
    EXPECT_EQ(result.wire_bytes_per_iteration, traffic.wire_bytes);
    EXPECT_EQ(result.messages_per_iteration, traffic.wire_messages);
    for (const CollectiveReport& row : result.collectives) EXPECT_GT(row.calls, 0U);
  }
}

TEST(Together, SumsAreRightWhateverTheGroupAndTheCompany) {
  for (const int gpus : {1, 2})
    for (const char* library : {"nccl-2.28", "nccl-2.30", "generic", "gloo"}) {
      std::vector<CallOf> calls = kThree;
      if (library == std::string("gloo")) calls[1] = {Func::all_reduce, 77};
      SmallJob job = job_of(3, gpus, calls, true, library);
      job.spec.run.verify = true;
      job.spec.run.iterations = 2;
      const Result result = job.run();
      EXPECT_GT(result.verify->checked_elements, 0U);
      EXPECT_EQ(result.verify->wrong_elements, 0U) << library;
    }
}

// On one channel the second call waits for the end of the first, however small both are.
TEST(Together, CallsOfOneChannelFollowOneAnother) {
  const auto on_one_channel = [&](std::uint64_t count, bool together) {
    SmallJob job = job_of(4, 1, {{Func::all_reduce, count}, {Func::all_reduce, count}}, together);
    job.spec.collectives.environment = {{"NCCL_MAX_NCHANNELS", "1"}, {"NCCL_ALGO", "ring"}};
    return seconds_of(job);
  };
  for (const std::uint64_t count : {2000, 4 << 20})
    EXPECT_NEAR(on_one_channel(count, true), on_one_channel(count, false),
                0.05 * on_one_channel(count, false));
}

// Two small calls on channels of their own wait for the network at the same time.
TEST(Together, CallsOfDifferentChannelsDoNotWait) {
  const std::vector<CallOf> two{{Func::all_reduce, 2000}, {Func::all_reduce, 2000}};
  const double together = seconds_of(job_of(4, 1, two, true)),
               apart = seconds_of(job_of(4, 1, two, false));
  EXPECT_LT(together, 0.8 * apart);
  EXPECT_GT(together, 0.4 * apart);
}

// Inside a node they share the links.
TEST(Together, CallsInsideANodeTakeAsLongAsAll) {
  const double together = seconds_of(job_of(1, 8, kThree, true)),
               apart = seconds_of(job_of(1, 8, kThree, false));
  EXPECT_NEAR(together, apart, 0.35 * apart);  // other algorithms and channels
}

TEST(Together, ExposesTheLaunchOnce) {
  const Result result = job_of(4, 1, kThree, true).run();
  EXPECT_DOUBLE_EQ(result.iterations[0].exposed_comm_seconds, result.iterations[0].seconds);
}

// As flows, and as an estimate, a launch takes as long as when its messages are played.
TEST(Together, TakesAsLongInEveryModel) {
  const std::vector<CallOf> two{{Func::all_reduce, 4 << 20}, {Func::reduce_scatter, 1 << 20}};
  for (const std::vector<CallOf>& calls : {two, kThree}) {
    SmallJob job = job_of(4, 1, calls, true);
    const double messages = seconds_of(job);
    EXPECT_NEAR(estimate_of(job), messages, 1e-9 * messages);
    job.spec.fabric.network = NetworkModel::flow;
    EXPECT_NEAR(seconds_of(job), messages, 0.05 * messages);
  }
}

// More members than an estimate plays: the bytes of all calls pass their NICs.
TEST(Together, OfManyMembersIsEstimatedByTheBytesOfAllItsCalls) {
  const std::vector<CallOf> calls{{Func::all_reduce, 64 << 20}, {Func::reduce_scatter, 2 << 20}};
  const int nodes = CallTimes::kMostPlayed + 1;
  const double apart = estimate_of(job_of(nodes, 1, calls, false));
  EXPECT_NEAR(estimate_of(job_of(nodes, 1, calls, true)), apart, 0.01 * apart);
}

TEST(Together, ShardsChangeNothing) {
  testing::expect_alike_with_shards(job_of(4, 2, kThree, true), {2, 3});
}

// In a group, a send and a receive do not wait for each other at either end.
TEST(Together, TransfersOfBothWays) {
  SmallJob job(2, 1, FabricKind::virtual_time);
  job.spec.collectives.library = "nccl-2.28";
  std::vector<Op> both(2);
  both[0].kind = Op::Kind::recv;
  both[1].kind = Op::Kind::send;
  for (Op& op : both) {
    op.func = Func::send_recv;
    op.peer = 1;
    op.count = 1 << 22;
  }
  make_launch(both, job.workload.launches);
  for (const Op& op : both) job.program().streams[0].push_back(op);
  const Result result = job.run();
  EXPECT_EQ(result.wire_bytes_per_iteration, 2U * (1 << 22) * 4);
}

}  // namespace
}  // namespace ghostrank
