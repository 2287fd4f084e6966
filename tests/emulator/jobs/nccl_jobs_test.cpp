// What NCCL's jobs play: every call of a job as `schedule` gives it for that call alone, and the
// first phase of Llama-3 405B.
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "emulator/traffic/schedules.h"
#include "emulator/traffic/traffic.h"
#include "profiles/input/shipped.h"
#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/support.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

constexpr int kPerNode = 8;

JobSpec megatron(int tp, const std::string& more) {
  return test::load_text(
             "model: {base: llama3-8b, layers: 8}\ndevice: {base: h100-sxm, memory_bytes: 0}\n"
             "precision: {parameters: bf16, gradients: fp32}\n"
             "cluster: {nodes: 4, gpus_per_node: 8, nics_per_node: 8}\n"
             "parallel: {framework: megatron, distributed_optimizer: true, global_batch: 32, tp: " +
             std::to_string(tp) + more +
             "}\ncollectives: {library: nccl-2.28, node_template: hgx-h100-400g}\n"
             "fabric: {kind: virtual}\n")
      .spec;
}

// A communicator as NCCL has it: of these ranks, on the GPUs that they have.
Communicator communicator_of(const std::vector<WorldRank>& members) {
  Communicator comm;
  comm.node = "hgx-h100-400g";
  comm.channels = 0;
  for (const WorldRank rank : members) {
    comm.node_of.push_back(rank.value() / kPerNode);
    comm.gpu_of.push_back(rank.value() % kPerNode);
  }
  return comm;
}

// Same actors, channels and steps for some ranks of the group.
void expect_same(const Schedule& a, const Schedule& b, const std::string& which) {
  ASSERT_EQ(a.played(), b.played()) << which;
  const int size = a.collective().size;
  for (const GroupRank r : {0, size / 2, size - 1}) {
    ASSERT_EQ(a.actors(r), b.actors(r)) << which;
    for (int i = 0; i < a.actors(r); ++i) {
      ASSERT_EQ(a.actor(r, i).channel, b.actor(r, i).channel) << which;
      ASSERT_EQ(a.actor(r, i).steps, b.actor(r, i).steps) << which;
      const int stride = std::max(1, a.actor(r, i).steps / 50);
      for (int k = 0; k < a.actor(r, i).steps; k += stride)
        ASSERT_EQ(a.step(r, i, k), b.step(r, i, k)) << which;
    }
  }
}

// Calls visit(op, group) once for every op that communicates in a role's last program and every
// group of the op's kind.
template <typename Visit>
void for_each_call(const Workload& workload, Visit visit) {
  std::set<std::pair<std::uint32_t, const Op*>> seen;
  for (const Role& role : workload.roles)
    for (const OpList& stream : role.iterations.back().streams)
      for (const Op& op : stream) {
        if (op.kind != Op::Kind::collective && op.kind != Op::Kind::send) continue;
        for (std::uint32_t g = 0; g < workload.groups.size(); ++g)
          if (workload.groups[g].kind == op.group && seen.insert({g, &op}).second) visit(op, g);
      }
}

class JobOfTensorParallel : public ::testing::TestWithParam<int> {};

TEST_P(JobOfTensorParallel, PlaysEveryCallAsScheduleDoes) {
  const JobSpec spec = megatron(
      GetParam(), ", sequence_parallel: " + std::string(GetParam() > 1 ? "true" : "false"));
  const Workload workload = plan_workload(spec);
  const Cluster cluster(spec, workload, 1);
  const Schedules schedules(spec, workload, cluster);
  int compared = 0;
  for_each_call(workload, [&](const Op& op, std::uint32_t group) {
    const std::vector<WorldRank>& members = workload.groups[group].members;
    const Collective c = collective_of(workload, op, static_cast<int>(members.size()));
    const auto alone =
        find_algorithm("nccl-2.28", op.func, "auto")->make(c, communicator_of(members));
    expect_same(*schedules.get(group, op).schedule, *alone,
                workload.group_names[op.group] + " " + std::string(name_of(op.func)));
    ++compared;
  });
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Tp, JobOfTensorParallel, ::testing::Values(1, 2, 4, 8));

// Interleaved stages overlap their transfers, each of which has a communicator of its two ranks;
// those of other schedules travel in batches, within the stages' group.
TEST(NcclJobs, TransfersOfAPipelineAreCutAsInTheirCommunicator) {
  for (const int tp : {1, 8})
    for (const bool interleaved : {false, true}) {
      const JobSpec spec = megatron(
          tp, ", pp: 4" + std::string(interleaved ? ", schedule: interleaved, interleave: 2" : ""));
      const Workload workload = plan_workload(spec);
      const Cluster cluster(spec, workload, 1);
      const Schedules schedules(spec, workload, cluster);
      int compared = 0;
      for_each_call(workload, [&](const Op& op, std::uint32_t group) {
        if (op.kind != Op::Kind::send) return;
        EXPECT_EQ(op.within, interleaved ? Op::Within::pair : Op::Within::group);
        const std::vector<WorldRank>& members = workload.groups[group].members;
        const auto size = static_cast<int>(members.size());
        for (GroupRank from = 0; from < size; ++from) {
          Collective c = collective_of(workload, op, size);
          c.root = from;
          c.target = ((from + op.peer) % size + size) % size;
          c.pair = interleaved;
          const GroupRank low = std::min(c.root, c.target), high = std::max(c.root, c.target);
          const Communicator comm =
              communicator_of(interleaved ? std::vector{members[low], members[high]} : members);
          expect_same(*schedules.transfer(group, op, c.root, c.target),
                      *find_algorithm("nccl-2.28", Func::send_recv, "auto")->make(c, comm),
                      "from " + std::to_string(from));
          ++compared;
        }
      });
      EXPECT_GT(compared, 0);
      for (const Schedules::Row& row : schedules.rows())
        EXPECT_EQ(row.exactness.level, Exactness::Level::messages) << row.op << " " << row.group;
    }
}

// PyTorch's group of broadcasts is one plan in a job, too.
TEST(NcclJobs, GatherBlocksOfDifferentLengthsAsOneGroup) {
  std::vector<std::uint64_t> counts(16, 9000);
  counts[1] = 0;
  counts[2] = 7000;
  counts[15] = 9001;
  for (const char* library : {"nccl-2.28", "nccl-2.30"}) {
    testing::SmallJob job(2, kPerNode, FabricKind::virtual_time);
    job.spec.collectives.library = library;
    job.spec.collectives.node_template = "hgx-h100-400g";
    job.collective(Func::all_gather_v, std::make_shared<const std::vector<std::uint64_t>>(counts));
    const Cluster cluster(job.spec, job.workload, 1);
    const Schedules schedules(job.spec, job.workload, cluster);
    const Op& op = job.program().streams[0].front();
    const auto alone = find_algorithm(library, op.func, "auto")
                           ->make(collective_of(job.workload, op, 16),
                                  communicator_of(job.workload.groups[0].members));
    expect_same(*schedules.get(0, op).schedule, *alone, library);
    ASSERT_EQ(schedules.rows().size(), 1u);
    EXPECT_EQ(schedules.rows()[0].algorithm.substr(0, 11), "broadcasts/");
    EXPECT_EQ(schedules.rows()[0].exactness.level, Exactness::Level::messages);
    EXPECT_EQ(job.run().collectives.at(0).algorithm, schedules.rows()[0].algorithm);
  }
}

std::string shipped_job(const std::string& name) {
  for (const std::string& folder : profile_directories())
    if (const std::string file = folder + "/jobs/" + name + ".yaml"; std::filesystem::exists(file))
      return file;
  return name;
}

// A data-parallel group has one GPU of each node: 4 channels, and rings where 16 channels would
// have chosen PAT. Activations are cut into messages of 128 KiB.
TEST(NcclJobs, PlanLlama405B) {
  const LoadedJob job = load_job(shipped_job("llama3-405b"), {});
  const Workload workload = plan_workload(job.spec);
  const TrafficPlan plan = plan_traffic(job.spec, workload);
  int gathers = 0, transfers = 0;
  for (const CollectiveTraffic& row : plan.collectives) {
    if (row.op == "all_gather" && row.group == "dp") {
      EXPECT_EQ(row.algorithm, "ring/Simple");
      ++gathers;
    }
    if (row.op != "send_recv") continue;
    EXPECT_EQ(row.algorithm, "p2p");
    EXPECT_EQ(row.wire_bytes / row.wire_messages, 128U << 10);
    transfers += static_cast<int>(row.wire_messages / 1'000'000);
  }
  EXPECT_EQ(gathers, 1);
  EXPECT_EQ(transfers, 2 * 264);

  const Cluster cluster(job.spec, workload, 1);
  const Schedules schedules(job.spec, workload, cluster);
  std::set<int> channels, of_transfers;
  for_each_call(workload, [&](const Op& op, std::uint32_t group) {
    if (op.kind == Op::Kind::send) {
      const auto size = static_cast<int>(workload.groups[group].members.size());
      of_transfers.insert(
          schedules.transfer(group, op, 0, ((op.peer % size) + size) % size)->actors(0));
    }
    if (op.func != Func::all_gather || workload.group_names[op.group] != "dp") return;
    const Schedule& schedule = *schedules.get(group, op).schedule;
    for (int a = 0; a < schedule.actors(0); ++a) channels.insert(schedule.actor(0, a).channel);
  });
  EXPECT_EQ(channels, (std::set<int>{0, 1, 2, 3}));
  // Interleaved: the two ranks' own communicator gives a peer two channels, that of 16 stages one.
  EXPECT_EQ(of_transfers, std::set<int>{2});
}

}  // namespace
}  // namespace ghostrank
