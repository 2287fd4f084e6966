// Transfers inside a node that have their ports for themselves, beside the same ones message by
// message.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/common/dice.h"
#include "collectives/node_links.h"
#include "profiles/planners/plan.h"
#include "profiles/workload/program_builder.h"
#include "tests/emulator/play.h"
#include "tests/emulator/support.h"
#include "tests/profiles/support.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

using testing::has_lone_ports;
using testing::report_text;
using testing::SmallJob;

struct RingShape {
  int nodes, gpus, offset;
};

// Passes in which each rank sends to another one of its node, sends on what came, and computes
// beside that; then all ranks of the node, or those of one number on all nodes, meet. Each rank
// computes for times of its own. In some jobs GPU 2 receives from GPU 0, too, so that its port is
// not alone.
Program ring_program(std::uint64_t seed, int rank, const RingShape& shape) {
  checking::Dice dice(seed), own(seed * 1000 + static_cast<std::uint64_t>(rank));
  ProgramBuilder out({"compute", "in", "out"});
  const bool skewed = dice.below(2) == 0, further = dice.below(3) == 0 && shape.gpus > 2;
  const auto delay = [&](std::size_t stream) {
    const std::uint64_t all = dice.below(40), alone = own.below(300);
    const auto us = static_cast<Picoseconds>(skewed ? alone : all);
    if (dice.below(3) > 0) out.compute(stream, "work", us * kPicosPerMicro / 4);
  };
  constexpr std::uint64_t kCounts[] = {0, 1, 3000, 70'000, 300'001, 1'500'000};
  for (std::uint64_t pass = 1 + dice.below(5); pass > 0; --pass) {
    const std::uint64_t count = kCounts[dice.below(6)];
    const bool sends_on = dice.below(2) == 0;
    const Op::Within within = dice.below(2) == 0 ? Op::Within::pair : Op::Within::group;
    for (std::uint64_t step = 1 + dice.below(4); step > 0; --step) {
      delay(2);
      out.send(2, out.label("send"), 0, shape.offset, DataType::uint8, count, within);
      delay(1);
      out.recv(1, out.label("receive"), 0, -shape.offset, DataType::uint8, count, within);
      delay(0);
      if (dice.below(2) == 0) out.after(0, 1);
      if (sends_on) out.after(2, 1);
    }
    if (further && rank % shape.gpus == 0)
      out.send(2, out.label("further"), 0, 2, DataType::uint8, 2 * count);
    if (further && rank % shape.gpus == 2)
      out.recv(1, out.label("further"), 0, -2, DataType::uint8, 2 * count);
    out.after(0, 1);
    if (dice.below(2) == 0) out.after(0, 2);
    if (dice.below(3) == 0) {
      out.after(1, 0);
      out.collective(1, "meet", Func::reduce_scatter, 0, DataType::uint8, 10'000);
    } else if (shape.nodes > 1 && dice.below(2) == 0) {
      out.collective(0, "across", Func::all_reduce, 1, DataType::float32, 5000);
    }
    if (dice.below(2) == 0) out.after(2, 0);
  }
  return out.take();
}

SmallJob random_ring(std::uint64_t seed) {
  checking::Dice dice(seed + 7000);
  const RingShape shape{static_cast<int>(1 + dice.below(2)), static_cast<int>(2 + dice.below(4)),
                        dice.below(3) == 0 ? -1 : 1};
  SmallJob job(shape.nodes, shape.gpus, FabricKind::virtual_time);
  constexpr const char* kLibraries[] = {"nccl-2.28", "nccl-2.30", "nccl-2.30", "generic"};
  job.spec.collectives.library = kLibraries[dice.below(4)];
  if (job.spec.collectives.library != "generic") job.spec.collectives.channels = 0;
  constexpr double kRates[] = {0, 100e9, 2900e9};
  constexpr Picoseconds kLatencies[] = {0, kPicosPerMicro, 3'400'000};
  job.spec.cluster.intra_node = {kRates[dice.below(3)], kLatencies[dice.below(3)]};
  job.spec.cluster.nic = {100e9, 3 * kPicosPerMicro};
  job.spec.fabric.network = NetworkModel::flow;
  job.spec.run.iterations = 2;
  job.spec.run.jitter = dice.below(3) == 0 ? 0.1 : 0;
  if (dice.below(4) == 0) job.spec.run.compute_slowdown = 0.2;
  if (dice.below(4) == 0) {
    NodeLinks links = unlinked("two", shape.gpus);
    links.connect(0, 1, 50e9);
    job.spec.cluster.links = std::make_shared<const NodeLinks>(std::move(links));
  }
  Workload& w = job.workload;
  w.group_names = {"node", "across"};
  w.groups.clear();
  for (int node = 0; node < shape.nodes; ++node) {
    w.groups.push_back({0, {}});
    for (int gpu = 0; gpu < shape.gpus; ++gpu)
      w.groups.back().members.push_back(WorldRank(node * shape.gpus + gpu));
  }
  for (int gpu = 0; gpu < shape.gpus; ++gpu) {
    w.groups.push_back({1, {}});
    for (int node = 0; node < shape.nodes; ++node)
      w.groups.back().members.push_back(WorldRank(node * shape.gpus + gpu));
  }
  w.roles.clear();
  for (int rank = 0; rank < w.ranks; ++rank) {
    w.role_of[WorldRank(rank)] = static_cast<std::uint16_t>(rank);
    w.roles.push_back({"rank", {ring_program(seed, rank, shape)}});
  }
  return job;
}

// The same job with a program that no iteration plays, in which ranks send by two streams.
SmallJob message_by_message(SmallJob job) {
  ProgramBuilder out({"compute", "in", "out"});
  for (const std::size_t stream : {1, 2})
    out.send(stream, out.label("send"), 0, 1, DataType::uint8, 1);
  const Program two = out.take();
  for (Role& role : job.workload.roles) role.iterations.push_back(two);
  job.workload.order = {0};
  return job;
}

// Further streams that do nothing and have two workers keep ranks from running ahead.
SmallJob rings_by_events(SmallJob job) {
  for (Role& role : job.workload.roles)
    for (Program& program : role.iterations) {
      program.stream_names.push_back("idle");
      program.streams.emplace_back();
      program.at_once.assign(program.streams.size(), 1);
      program.at_once.back() = 2;
    }
  return job;
}

TEST(NodeTransfers, TakeAsLongAsTheirMessages) {
  const std::uint64_t jobs = test::number_in("GHOSTRANK_RANDOM_JOBS", 150);
  for (std::uint64_t seed = 0; seed < jobs; ++seed) {
    SCOPED_TRACE("job " + std::to_string(seed));
    const SmallJob job = random_ring(seed), messages = message_by_message(job);
    ASSERT_TRUE(has_lone_ports(job.spec, job.workload));
    ASSERT_FALSE(has_lone_ports(messages.spec, messages.workload));
    const Result whole = job.run(), played = messages.run();
    ASSERT_EQ(whole.interrupted, "");
    ASSERT_EQ(report_text(whole), report_text(played));
    if (seed % 4 == 0) {
      ASSERT_EQ(report_text(rings_by_events(job).run()), report_text(played));
    }
  }
}

// Stages of a pipeline inside a node send each other both ways, and replicas nothing.
TEST(LonePorts, AreThoseOfRingsButNotOfPipelines) {
  const auto ports = [](const std::string& parallel) {
    const LoadedJob job = test::load_text(
        "schema: ghostrank/job/1\nmodel: {kind: transformer, name: wide, architecture: gpt2, "
        "layers: 4, hidden: 512, heads: 8, ffn: 2048, sequence: 512, vocabulary: 512}\n"
        "device: h100-sxm\nprecision: {parameters: bf16, gradients: bf16}\n"
        "cluster: {nodes: 2, gpus_per_node: 4, intra_node: {rate: 3Tbps, latency_us: 3}}\n"
        "parallel: {framework: megatron, global_batch: 8, " +
        parallel +
        "}\ncollectives: {library: nccl-2.30}\nfabric: {kind: virtual, network: flow}\n");
    return has_lone_ports(job.spec, plan_workload(job.spec));
  };
  EXPECT_TRUE(ports("tp: 4, sequence_parallel: true, tp_comm_overlap: true"));
  EXPECT_TRUE(ports("tp: 4, pp: 2, sequence_parallel: true, tp_comm_overlap: true"));
  EXPECT_FALSE(ports("tp: 4, sequence_parallel: true"));
  EXPECT_FALSE(ports("tp: 2, pp: 4, sequence_parallel: true, tp_comm_overlap: true"));
}

// A transfer of which the ends differ ends the run, as one of messages does.
TEST(NodeTransfers, OfOtherSizesAtTheirReceiverAreRefused) {
  SmallJob job(1, 2, FabricKind::virtual_time);
  job.spec.fabric.network = NetworkModel::flow;
  testing::with_sends(job, {{0, 1}}, 1000);
  Op op = job.workload.roles[1].iterations[0].streams[0].front();
  op.count = 999;
  job.workload.roles[1].iterations[0].streams[0] = {op};
  EXPECT_EQ(job.run().interrupted, "rank 1 receives 3996 bytes where 4000 are sent to it");
}

}  // namespace
}  // namespace ghostrank
