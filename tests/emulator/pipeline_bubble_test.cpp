// Megatron's pipeline schedules played in virtual time on an idle network, against the closed forms
// of their bubbles; and calls inside a node against the same calls message by message.
#include <gtest/gtest.h>

#include "profiles/pipeline.h"
#include "profiles/program_builder.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

constexpr Picoseconds kForward = 1000 * kPicosPerMicro, kInput = 1200 * kPicosPerMicro,
                      kWeight = 800 * kPicosPerMicro;

Picoseconds time_of(Pass pass, int chunks) {
  switch (pass) {
    case Pass::forward:
      return kForward / chunks;
    case Pass::backward:
      return (kInput + kWeight) / chunks;
    case Pass::input_backward:
      return kInput / chunks;
    case Pass::weight_backward:
      return kWeight / chunks;
  }
  return 0;
}

// The slots of one stage as a program: one byte from part to part, no time on the network.
Program program_of(const Pipeline& pipeline, int stage) {
  ProgramBuilder out({"compute"});
  for (const Slot& slot : pipeline_slots(pipeline, stage)) {
    const bool forward = slot.pass == Pass::forward, weight = slot.pass == Pass::weight_backward;
    const int part = pipeline.part(stage, slot.chunk);
    const auto neighbour = [&](int step) {
      const int other = part + step;
      return other < 0 || other >= pipeline.parts() ? 0 : pipeline.stage_of(other) - stage;
    };
    const std::uint16_t group = forward ? 0 : 1;
    if (const int from = neighbour(forward ? -1 : 1); from != 0 && !weight)
      out.recv(0, 0, group, from, DataType::uint8, 1);
    out.compute(0, "pass", time_of(slot.pass, pipeline.chunks));
    if (const int to = neighbour(forward ? 1 : -1); to != 0 && !weight)
      out.send(0, 0, group, to, DataType::uint8, 1);
  }
  return out.take();
}

// Iteration time without what every stage computes anyway.
double bubble_us(const Pipeline& pipeline) {
  SmallJob job(pipeline.stages, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {0, 0};
  job.workload.group_names = {"forward", "backward"};
  job.workload.groups.push_back(job.workload.groups[0]);
  job.workload.groups[1].kind = 1;
  job.workload.roles.clear();
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    job.workload.role_of[static_cast<std::size_t>(stage)] = static_cast<std::uint16_t>(stage);
    job.workload.roles.push_back({std::to_string(stage), {program_of(pipeline, stage)}});
  }
  const double busy = seconds(pipeline.micro_batches * (kForward + kInput + kWeight));
  return (job.run().iterations.at(0).seconds - busy) * 1e6;
}

TEST(PipelineBubble, OfOneForwardOneBackwardIsOnePassOfEachPerStage) {
  for (const int stages : {2, 4, 8})
    for (const int micro_batches : {8, 16, 40})
      EXPECT_NEAR(bubble_us({"1f1b", stages, 1, micro_batches}), (stages - 1) * 3000, 1e-3);
}

TEST(PipelineBubble, ShrinksWithTheChunksOfAnInterleavedSchedule) {
  for (const int stages : {2, 4, 8})
    for (const int chunks : {2, 4, 5})
      EXPECT_NEAR(bubble_us({"interleaved", stages, chunks, 4 * stages}),
                  (stages - 1) * 3000.0 / chunks, 1e-3);
}

// Qi et al. (2024): the weights' products fill what they can of the bubble.
TEST(PipelineBubble, OfZeroBubbleH1IsAsMuchSmallerAsTheWeightsTake) {
  for (const int stages : {2, 4, 8})
    EXPECT_NEAR(bubble_us({"zb-h1", stages, 1, 4 * stages}), (stages - 1) * (1000 + 1200 - 800),
                1e-3);
}

TEST(PipelineBubble, OfTheVIsSmallerThanThatOfH1) {
  for (const int stages : {2, 4, 8}) {
    const double v = bubble_us({"zbv", stages, 2, 4 * stages});
    EXPECT_GE(v, 0);
    EXPECT_LT(v, bubble_us({"zb-h1", stages, 1, 4 * stages}));
  }
}

// ---- Calls inside a node ----

SmallJob one_node(Func func, InsideNode how, int gpus) {
  SmallJob job(1, gpus, FabricKind::virtual_time);
  job.spec.fabric.inside_node = how;
  job.spec.cluster.intra_node = {2400e9, 3 * kPicosPerMicro};
  job.compute(7 * kPicosPerMicro).collective(func, 1 << 20).compute(kPicosPerMicro);
  return job;
}

TEST(CallsInsideANode, TakeTheTimeOfTheirMessages) {
  for (const Func func : {Func::all_reduce, Func::reduce_scatter, Func::all_gather})
    for (const int gpus : {2, 4, 8}) {
      const double modelled = one_node(func, InsideNode::model, gpus).run().iterations[0].seconds;
      const double played = one_node(func, InsideNode::messages, gpus).run().iterations[0].seconds;
      EXPECT_NEAR(modelled, played, played * 1e-3);
    }
}

TEST(CallsInsideANode, CountTheSameBytesAndMessages) {
  for (const Func func : {Func::all_reduce, Func::all_to_all, Func::broadcast}) {
    const Result modelled = one_node(func, InsideNode::model, 8).run(),
                 played = one_node(func, InsideNode::messages, 8).run();
    EXPECT_EQ(modelled.intra_node_bytes_per_iteration, played.intra_node_bytes_per_iteration);
    EXPECT_EQ(modelled.intra_node_messages_per_iteration, played.intra_node_messages_per_iteration);
    EXPECT_EQ(modelled.collectives.at(0).calls, played.collectives.at(0).calls);
  }
}

TEST(CallsInsideANode, BeginWithTheLastMember) {
  SmallJob job = one_node(Func::all_reduce, InsideNode::model, 4);
  Program late = job.program();
  late.streams[0][0].duration = 100 * kPicosPerMicro;
  job.workload.roles.push_back({"late", {late}});
  job.workload.role_of[2] = 1;
  const double all = one_node(Func::all_reduce, InsideNode::model, 4).run().iterations[0].seconds;
  EXPECT_NEAR(job.run().iterations[0].seconds, all + 93e-6, 1e-12);
}

TEST(CallsInsideANode, SayWhoWaitsWhenAMemberNeverComes) {
  SmallJob job = one_node(Func::all_reduce, InsideNode::model, 4);
  Program without = job.program();
  without.streams[0].erase(without.streams[0].begin() + 1);
  job.workload.roles.push_back({"absent", {without}});
  job.workload.role_of[3] = 1;
  const Result result = job.run();
  EXPECT_NE(result.interrupted.find(
                "rank 0 on host 0 in allreduce #0 'op' of group all inside its node waits"),
            std::string::npos)
      << result.interrupted;
}

}  // namespace
}  // namespace ghostrank
