// Megatron's pipeline schedules played in virtual time on an idle network, against the closed forms
// of their bubbles; and calls inside a node against the same calls message by message.
#include <gtest/gtest.h>

#include "profiles/planners/pipeline/pipeline.h"
#include "profiles/workload/program_builder.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

// Times of one micro-batch in all parts of a stage.
struct Times {
  Picoseconds forward = 1000 * kPicosPerMicro, input = 1200 * kPicosPerMicro,
              weight = 800 * kPicosPerMicro;

  std::vector<int> layers;  // by part, if unequal: factor of the times

  Picoseconds of(Pass pass) const {
    switch (pass) {
      case Pass::forward:
        return forward;
      case Pass::backward:
        return input + weight;
      case Pass::input_backward:
        return input;
      case Pass::weight_backward:
        return weight;
    }
    return 0;
  }
};

// The time of one pass of one part.
Picoseconds time_of(const Pipeline& pipeline, int stage, const Slot& slot, const Times& times) {
  if (times.layers.empty()) return times.of(slot.pass) / (pipeline.parts() / pipeline.stages);
  return times.of(slot.pass) * times.layers[pipeline.part(stage, slot.chunk)];
}

// The slots of one stage as a program: one byte from part to part, so the network takes no time.
Program program_of(const Pipeline& pipeline, int stage, const Times& times) {
  ProgramBuilder out({"compute"});
  const std::vector<Slot> slots = pipeline_slots(pipeline, stage);
  const auto transfer = [&](const Slot& slot, bool receives) {
    const bool forward = slot.pass == Pass::forward;
    if (slot.pass == Pass::weight_backward) return;
    const auto other = pipeline.neighbour(stage, slot.chunk, forward == receives ? -1 : 1);
    if (!other || *other == stage) return;
    const std::uint16_t group = forward ? 0 : 1;
    receives ? out.recv(0, 0, group, *other - stage, DataType::uint8, 1)
             : out.send(0, 0, group, *other - stage, DataType::uint8, 1);
  };
  for (std::size_t i = 0, end = 0; i < slots.size(); i = end) {
    end = i + (slots[i].joined ? 2 : 1);
    for (std::size_t s = i; s < end; ++s) transfer(slots[s], true);
    for (std::size_t s = i; s < end; ++s)
      out.compute(0, "pass", time_of(pipeline, stage, slots[s], times));
    for (std::size_t s = i; s < end; ++s) transfer(slots[s], false);
  }
  return out.take();
}

double step_us(const Pipeline& pipeline, const Times& times) {
  SmallJob job(pipeline.stages, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {0, 0};
  job.workload.group_names = {"forward", "backward"};
  job.workload.groups.push_back(job.workload.groups[0]);
  job.workload.groups[1].kind = 1;
  job.workload.roles.clear();
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    job.workload.role_of[WorldRank(stage)] = static_cast<std::uint16_t>(stage);
    job.workload.roles.push_back({std::to_string(stage), {program_of(pipeline, stage, times)}});
  }
  return job.run().iterations.at(0).seconds * 1e6;
}

// Iteration time less the compute that every stage has.
double bubble_us(const Pipeline& pipeline, const Times& times = {}) {
  const Picoseconds busy = pipeline.micro_batches * (times.forward + times.input + times.weight);
  return step_us(pipeline, times) - seconds(busy) * 1e6;
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

// Qi et al. (2024): the weight passes fill as much of the bubble as they can.
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

// Qi et al. (2024): when all three passes take equally long, the bubble is only the way down to the
// last stage, one forward of a chunk per stage.
TEST(PipelineBubble, OfTheVIsTheWayToItsLastStage) {
  constexpr Picoseconds kPass = 1000 * kPicosPerMicro;
  for (const int stages : {2, 4, 8})
    for (const int micro_batches : {2 * stages, 4 * stages, 4 * stages + 3})
      EXPECT_NEAR(bubble_us({"zbv", stages, 2, micro_batches}, {kPass, kPass, kPass}),
                  (stages - 1) * 500, 1e-3);
}

// Stages of unequal length. A longest last stage never waits once it has begun; the bubble is the
// way there and back. A first stage never waits when it is so long that the way through all other
// stages takes less than its warm-up.
TEST(PipelineBubble, OfUnequalStagesFollowsTheLongest) {
  for (const int micro_batches : {4, 9, 32}) {
    const auto step = [&](std::vector<int> layers) {
      Times times;
      times.layers = std::move(layers);
      return step_us({"1f1b", 4, 1, micro_batches}, times);
    };
    constexpr double kLayer = 3000;
    EXPECT_NEAR(step({7, 8, 8, 9}), (7 + 8 + 8 + 9 * micro_batches) * kLayer, 1e-3);
    EXPECT_NEAR(step({3, 1, 2, 3}), (3 + 1 + 2 + 3 * micro_batches) * kLayer, 1e-3);
    EXPECT_NEAR(step({8, 2, 2, 1}), 8 * micro_batches * kLayer, 1e-3);
  }
}

// What a plan says of the least time, without playing.
TEST(PipelineBubble, IsKnownWithoutPlaying) {
  const auto planned_us = [](const Pipeline& pipeline, const Times& times) {
    const auto time = [&](int part, Pass pass) {
      const int stage = pipeline.stage_of(part), chunk = pipeline.part(stage, 0) == part ? 0 : 1;
      return time_of(pipeline, stage, {pass, 0, chunk}, times);
    };
    return seconds(pipeline_time(pipeline, time)) * 1e6;
  };
  Times even, uneven;
  for (const int micro_batches : {4, 8, 20}) {
    const Pipeline plain{"1f1b", 4, 1, micro_batches}, halves{"zb-h1", 4, 1, micro_batches},
        chunks{"interleaved", 4, 2, micro_batches}, v{"zbv", 4, 2, micro_batches};
    for (const Pipeline& pipeline : {plain, halves, chunks, v}) {
      EXPECT_NEAR(planned_us(pipeline, even), step_us(pipeline, even), 1e-3) << pipeline.schedule;
      uneven.layers = pipeline.chunks == 1 ? std::vector<int>{7, 8, 2, 9}
                                           : std::vector<int>{7, 8, 2, 9, 1, 3, 3, 12};
      EXPECT_NEAR(planned_us(pipeline, uneven), step_us(pipeline, uneven), 1e-3)
          << pipeline.schedule;
    }
    const Pipeline joined{"dualpipev", 4, 2, micro_batches};
    if (micro_batches < 2 * joined.stages) continue;
    EXPECT_LE(planned_us(joined, even), step_us(joined, even) + 1e-3);
  }
}

// DeepSeek-AI (2024): (P/2 - 1)(F&B + B - 3W). Here F&B run one after the other, so F + 2B - 3W;
// all three passes of a micro-batch take equally long. dualpipev has as many stages on half the
// ranks.
TEST(PipelineBubble, OfDualPipeIsThatOfHalfTheStages) {
  constexpr Picoseconds kPass = 1000 * kPicosPerMicro;
  const Times alike{kPass, kPass, kPass};
  for (const int stages : {2, 4, 8})
    for (const int rounds : {2, 5}) {
      const double per_stage = 1000 + 2 * 2000 - 3 * 1000;
      EXPECT_NEAR(bubble_us({"dualpipe", stages, 2, rounds * stages}, alike),
                  (stages / 2 - 1) * per_stage, 1e-3);
      EXPECT_NEAR(bubble_us({"dualpipev", stages, 2, rounds * stages}, alike),
                  (stages - 1) * per_stage / 2, 1e-3);
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
  Op first = late.streams[0][0];
  first.duration = 100 * kPicosPerMicro;
  late.streams[0] = {first, late.streams[0][1]};
  job.workload.roles.push_back({"late", {late}});
  job.workload.role_of[WorldRank(2)] = 1;
  const double all = one_node(Func::all_reduce, InsideNode::model, 4).run().iterations[0].seconds;
  EXPECT_NEAR(job.run().iterations[0].seconds, all + 93e-6, 1e-12);
}

TEST(CallsInsideANode, SayWhoWaitsWhenAMemberNeverComes) {
  SmallJob job = one_node(Func::all_reduce, InsideNode::model, 4);
  Program without = job.program();
  without.streams[0] = {without.streams[0][0]};
  job.workload.roles.push_back({"absent", {without}});
  job.workload.role_of[WorldRank(3)] = 1;
  const Result result = job.run();
  EXPECT_NE(result.interrupted.find(
                "rank 0 on host 0 in allreduce #0 'op' of group all inside its node waits"),
            std::string::npos)
      << result.interrupted;
}

}  // namespace
}  // namespace ghostrank
