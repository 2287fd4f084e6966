// TorchTitan's pipelines and expert parallelism against closed forms that do not use the planner,
// and against a measured volume.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "profiles/job/job.h"
#include "profiles/model/model.h"
#include "profiles/planners/fsdp/mesh.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/planners/titan.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::CallSums;
using test::expect_sound;
using test::sums_of;
using test::Titan;

constexpr std::uint64_t kTable = 128'256 * 4096u, kLayer = 218'112'000, kM = 8192u * 4096 * 2;

// ---- Pipelines ----

// CCL-Bench (arXiv 2605.06544), Llama-3.1-8B, tp 2 pp 2, 4 samples of 512 tokens in fp32: rank 0
// has 16 layers and the embedding. It counts an all-gather as the shard and a reduce-scatter as its
// input.
TEST(TorchTitanPipeline, MovesTheVolumesMeasuredOnTwoStages) {
  const Workload workload = plan_workload(
      test::load_text("model: {base: llama3-8b, sequence: 512}\ndevice: h100-sxm\n"
                      "cluster: {nodes: 1, gpus_per_node: 4}\n"
                      "parallel: {framework: torchtitan, tp: 2, pp: 2, global_batch: 4}\n")
          .spec);
  CallSums sums = sums_of(workload.roles[0].iterations[0], workload, "tp");
  EXPECT_NEAR(static_cast<double>(sums.bytes[Func::all_gather]) / 1.09052e9, 1, 1e-5);
  EXPECT_NEAR(static_cast<double>(sums.bytes[Func::reduce_scatter]) * 2 / 2.18104e9, 1, 1e-5);
}

// 32 layers and two ends in four stages: 8, 9, 8 and 7 layers.
TEST(TorchTitanPipeline, GathersWhatTheForwardGaveUpAndScattersOnce) {
  constexpr std::uint64_t kLayers[] = {8, 9, 8, 7}, kShards = 2, kMicroBatches = 6;
  for (const char* policy : {"default", "always", "never"}) {
    Titan titan{.gpus = 8, .global_batch = 12};
    titan.more = std::string(", pp: 4, reshard_after_forward: ") + policy;
    const Workload workload = titan.workload();
    expect_sound(workload, policy);
    // With "always", the first pass gathers the parameters, and so does each pass after a forward.
    const std::uint64_t times = std::string(policy) == "always" ? kMicroBatches + 1 : 1;
    for (std::size_t stage = 0; stage < 4; ++stage) {
      const Program& program = workload.roles[stage].iterations[0];
      const std::uint64_t held = kLayers[stage] * kLayer + (stage == 0   ? kTable
                                                            : stage == 3 ? kTable + 4096
                                                                         : 0);
      const std::uint64_t units = kLayers[stage] + (stage % 3 == 0 ? 1 : 0);
      CallSums sums = sums_of(program, workload, "dp");
      EXPECT_EQ(sums.bytes[Func::all_gather], times * held * 2 / kShards) << policy << stage;
      EXPECT_EQ(sums.calls[Func::all_gather], times * units);
      EXPECT_EQ(sums.bytes[Func::reduce_scatter], held * 4 / kShards);
      EXPECT_EQ(sums.calls[Func::reduce_scatter], units);
      const CallSums forward = sums_of(program, workload, "pp.forward"),
                     backward = sums_of(program, workload, "pp.backward");
      EXPECT_EQ(forward.sent, stage < 3 ? kMicroBatches * kM : 0);
      EXPECT_EQ(backward.sent, stage > 0 ? kMicroBatches * kM : 0);
    }
  }
}

TEST(TorchTitanPipeline, ReducesGradientsBehindTheLastBackward) {
  Titan titan{.gpus = 4, .global_batch = 8};
  titan.more = ", pp: 2, schedule: interleaved";
  const Program program = titan.workload().roles[0].iterations[0];
  // A chunk is scattered when its last backward has ended: the later chunk first.
  std::vector<std::string> scattered;
  for (const Op& op : program.streams[1])
    if (op.kind == Op::Kind::collective && op.func == Func::reduce_scatter)
      scattered.push_back(program.labels[op.label]);
  ASSERT_EQ(scattered.size(), 17u);  // parts of 8, 9, 8 and 7 layers
  EXPECT_EQ(scattered.front(), "scatter layers.17");
  EXPECT_EQ(scattered[8], "scatter embeddings");
  EXPECT_EQ(scattered.back(), "scatter layers.7");
}

TEST(TorchTitanPipeline, KeepsTheParametersOfThreeChunks) {
  // A stage plays rounds of two micro-batches per chunk, so with more than three chunks some are
  // gathered again; with three all stay.
  const auto gathers = [](int chunks) {
    Titan titan{.model = "{base: llama3-8b, layers: 22}", .gpus = 4, .global_batch = 8};
    titan.more = ", pp: 2, schedule: interleaved, interleave: " + std::to_string(chunks);
    const Workload workload = titan.workload();
    return sums_of(workload.roles[1].iterations[0], workload, "dp").calls[Func::all_gather];
  };
  EXPECT_EQ(gathers(3), 12u);  // 24 units in six parts: 12 to a stage
  EXPECT_GT(gathers(6), 12u);
}

// With a split backward, the first part of the model has no input-gradient pass, because nobody
// waits for the gradient of its input.
TEST(TorchTitanPipeline, LeavesTheFirstPartsBackwardToTheWeightsPass) {
  Titan titan{.gpus = 4, .global_batch = 8};
  titan.more = ", pp: 2, tp: 2, schedule: zbv";
  const Workload workload = titan.workload();
  expect_sound(workload, "zbv");
  Titan plain{.gpus = 4, .global_batch = 8};
  plain.more = ", pp: 2, tp: 2";
  const Workload other = plain.workload();
  const auto total = [](const Workload& work, Func func) {
    std::uint64_t bytes = 0;
    for (const Role& role : work.roles)
      bytes += sums_of(role.iterations[0], work, "tp").bytes[func];
    return bytes;
  };
  for (const Func func : {Func::all_gather, Func::reduce_scatter, Func::all_reduce})
    EXPECT_EQ(total(workload, func), total(other, func));
}

// A stage waits for a warm-up send before the next send, and for a send in a batch at once.
TEST(TorchTitanPipeline, WaitsForSendsWhereTheRuntimeDoes) {
  constexpr int kMicroBatches = 8;
  const auto number = [](const std::vector<std::string>& labels, const char* label) {
    return std::count_if(labels.begin(), labels.end(),
                         [&](const std::string& l) { return l.starts_with(label); });
  };
  // Micro-batches whose forward, or backward, a stage computes if no send ever ends.
  const auto passes = [&](const Program& program, const char* label) {
    std::vector<std::string> all;
    for (const Op& op : program.streams[0])
      if (op.kind == Op::Kind::compute) all.push_back(program.labels[op.label]);
    const auto whole = number(all, label);
    if (whole == 0) throw std::invalid_argument(label);
    return kMicroBatches * number(test::computed_without_sends(program), label) / whole;
  };
  Titan titan{.gpus = 4, .global_batch = kMicroBatches};
  titan.more = ", pp: 4";
  const Workload workload = titan.workload();
  for (int stage = 0; stage < 4; ++stage) {
    const Program& program = workload.roles[stage].iterations[0];
    EXPECT_EQ(passes(program, "forward"), stage < 3 ? 2 : 1) << stage;
    EXPECT_EQ(passes(program, "backward"), stage < 3 ? 0 : 1) << stage;
  }
  titan.more = ", pp: 4, schedule: zbv";
  for (const Role& role : titan.workload().roles)
    EXPECT_EQ(passes(role.iterations[0], "forward"), kMicroBatches) << role.name;
}

TEST(TorchTitanPipeline, PlaysEverySchedule) {
  for (const char* schedule :
       {"1f1b", "interleaved", "interleaved, interleave: 4", "zbv", "dualpipev"})
    for (const char* more : {"", ", tp: 2", ", dp_replicate: 2",
                             ", tp: 2, reshard_after_forward: always, prefetch: 3"})
      for (const int micro_batches : {8, 10}) {
        Titan titan{.gpus = 16, .micro_batch = 1};
        titan.global_batch =
            micro_batches * (std::string(more).find("tp: 2") != std::string::npos ? 2 : 4);
        titan.more = std::string(", pp: 4, schedule: ") + schedule + more;
        expect_sound(titan.workload(), titan.more);
      }
}

// Two stages of 16 layers have the bubble of the closed form; of four stages the outer ones have
// fewer layers.
TEST(TorchTitanPipeline, KnowsItsBubbleWhereStagesAreAlike) {
  const auto bubble = [](int pp) {
    const JobSpec spec = test::load_text(
                             "model: llama3-8b\ndevice: h100-sxm\ncluster: {nodes: 1}\n"
                             "parallel: {framework: torchtitan, global_batch: 32, pp: " +
                             std::to_string(pp) + "}\n")
                             .spec;
    return pipeline_bubble(*pipeline_of(spec));
  };
  EXPECT_EQ(bubble(2), 1.0 / 8);
  EXPECT_EQ(bubble(4), std::nullopt);
}

TEST(TorchTitanPipeline, AccumulatesWithoutStagesToo) {
  Titan one{.gpus = 4, .global_batch = 4}, three{.gpus = 4, .global_batch = 12};
  const Workload single = one.workload(), triple = three.workload();
  CallSums a = sums_of(single.roles[0].iterations[0], single, "dp"),
           b = sums_of(triple.roles[0].iterations[0], triple, "dp");
  expect_sound(triple, "three micro-batches");
  EXPECT_EQ(b.bytes[Func::all_gather], 3 * a.bytes[Func::all_gather]);
  EXPECT_EQ(b.bytes[Func::reduce_scatter], 3 * a.bytes[Func::reduce_scatter]);
  EXPECT_EQ(b.bytes[Func::all_reduce], a.bytes[Func::all_reduce]);
  EXPECT_EQ(triple.samples_per_iteration, 12);
}

// Biases of queries, keys and values are cut as their weights are, so all ranks of a
// tensor-parallel group sum only the gradients of norms: 28 layers have two, the head one.
TEST(TorchTitan, CutsTheBiasesOfHeads) {
  const Workload workload =
      plan_workload(test::load_text("model: qwen2.5-7b\ndevice: h100-sxm\ncluster: {nodes: 1}\n"
                                    "parallel: {framework: torchtitan, tp: 4, recompute: full}\n")
                        .spec);
  const Program& program = workload.roles[0].iterations[0];
  std::uint64_t summed = 0;
  for (const auto& stream : program.streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::collective && program.labels[op.label] == "norm gradients")
        summed += op.count;
  EXPECT_EQ(summed, 57u * 3584);
}

// ---- Expert parallelism ----

// Rows out and back, forward and backward, in bf16; counts once per layer, one per expert.
TEST(TorchTitanExperts, MoveRowsAndTheirCounts) {
  constexpr std::uint64_t kLayers = 32, kHidden = 4096, kSequence = 4096, kTopK = 2;
  for (const int ep : {2, 4, 8})
    for (const int tp : {1, 2}) {
      Titan titan{.model = "mixtral-8x7b", .gpus = 16, .global_batch = 3 * 16 / tp};
      titan.more = ", ep: " + std::to_string(ep) + ", tp: " + std::to_string(tp);
      const Workload workload = titan.workload();
      expect_sound(workload, titan.more);
      const Program& program = workload.roles[0].iterations[0];
      std::uint64_t rows = 0, counts = 0;
      for (const auto& stream : program.streams)
        for (const Op& op : stream)
          if (op.kind == Op::Kind::collective && op.func == Func::all_to_all)
            (op.dtype == DataType::int64 ? counts : rows) +=
                op.count * bytes_of(op.dtype) * static_cast<std::uint64_t>(ep);
      EXPECT_EQ(rows, 3 * kLayers * 4 * (kSequence / tp * kTopK) * kHidden * 2);
      EXPECT_EQ(counts, 3 * kLayers * 8 * 8);
    }
}

// A layer's routed experts, 3 x 14336 x 4096 each, are sharded over the ranks that hold the same
// experts. All other parameters are sharded over all data-parallel ranks, where a router's 8 rows
// count as 16.
TEST(TorchTitanExperts, AreShardedOverAMeshOfTheirOwn) {
  constexpr std::uint64_t kExpert = 3 * 14336u * 4096u,
                          kOthers = 46702792704 - 32 * 8 * kExpert + 32 * 8 * 4096;
  for (const int ep : {2, 4, 8}) {
    Titan titan{.model = "mixtral-8x7b", .gpus = 16, .global_batch = 16};
    titan.more = ", ep: " + std::to_string(ep) + ", reshard_after_forward: never";
    const Workload workload = titan.workload();
    const Program& program = workload.roles[0].iterations[0];
    const auto here = static_cast<std::uint64_t>(8 / ep),
               shards = static_cast<std::uint64_t>(16 / ep);
    CallSums experts = sums_of(program, workload, "efsdp"),
             dense = sums_of(program, workload, "dp");
    EXPECT_EQ(experts.bytes[Func::all_gather], 32 * here * kExpert * 2 / shards);
    EXPECT_EQ(experts.bytes[Func::reduce_scatter], 32 * here * kExpert * 4 / shards);
    EXPECT_EQ(dense.bytes[Func::all_gather], kOthers * 2 / 16);
    EXPECT_EQ(dense.bytes[Func::reduce_scatter], kOthers * 4 / 16);
  }
}

TEST(TorchTitanExperts, TakeTheirRanksFromTensorAndDataParallelNeighbours) {
  Titan titan{.model = "mixtral-8x7b", .gpus = 32, .global_batch = 16};
  titan.more = ", ep: 4, tp: 2, pp: 2, dp_replicate: 2";
  const Workload workload = titan.workload();
  expect_sound(workload, titan.more);
  const auto members = [&](const char* name) { return test::groups_named(workload, name); };
  // Eight ranks per replica of a stage: tp in pairs, ep in fours.
  EXPECT_EQ(members("tp").count({2, 3}), 1u);
  EXPECT_EQ(members("ep").count({0, 1, 2, 3}), 1u);
  EXPECT_EQ(members("efsdp").count({1, 5}), 1u);
  EXPECT_EQ(members("dp_shard").count({1, 3, 5, 7}), 1u);
  EXPECT_EQ(members("dp_replicate").count({3, 11}), 1u);
  EXPECT_EQ(members("pp.forward").count({3, 19}), 1u);
  EXPECT_EQ(workload.roles.size(), 2u);
  EXPECT_EQ(workload.role_of[WorldRank(15)], 0);
  EXPECT_EQ(workload.role_of[WorldRank(16)], 1);
}

// Shared experts form a half of the layer, and the router sees only a part of the sequence, so its
// gradient is summed with the norms'. Per layer and micro-batch, attention and the shared experts
// gather and scatter once each way.
TEST(TorchTitanExperts, GatherTheSequenceForAttentionAndSharedExperts) {
  constexpr std::uint64_t kLayers = 4, kHidden = 4096, kHiddenStates = 4096 * kHidden * 2;
  Titan titan{.gpus = 4, .global_batch = 2};
  titan.model =
      "{base: mixtral-8x7b, layers: 4, experts: {count: 8, top_k: 2, shared: 1, ffn: 2048, "
      "router_bias: true}}";
  titan.more = ", tp: 2, ep: 4";
  const Workload workload = titan.workload();
  const Program& program = workload.roles[0].iterations[0];
  CallSums sums = sums_of(program, workload, "tp");
  EXPECT_EQ(sums.bytes[Func::all_gather] * 2, (4 * kLayers + 2) * kHiddenStates);
  EXPECT_EQ(sums.bytes[Func::reduce_scatter] * 2, (4 * kLayers + 2) * kHiddenStates);
  const std::uint64_t whole = kLayers * (2 * kHidden + 8 * kHidden) + kHidden;
  const std::uint64_t loss = 3 * 4096 * 4, counts = kLayers * 8 * 4;
  // Tensors: four of attention, the router, three of the shared expert, two norms; three of the
  // ends.
  const std::uint64_t norms = (kLayers * 10 + 3) * 4;
  EXPECT_EQ(sums.bytes[Func::all_reduce], whole * 2 + loss + counts + norms);
  CallSums data = sums_of(program, workload, "dp");
  EXPECT_EQ(data.bytes[Func::all_reduce], counts + norms + 8);
  EXPECT_EQ(sums_of(program, workload, "ep").bytes[Func::all_reduce], kLayers * 3 * 4);
}

// ---- What does not fit ----

TEST(TorchTitan, CountsTheSamplesOfManyRanks) {
  JobSpec spec =
      test::load_text("model: gpt2\ndevice: h100-sxm\nparallel: {framework: torchtitan}\n").spec;
  spec.cluster.nodes = 1 << 20;
  spec.cluster.gpus_per_node = 1;
  spec.parallel.micro_batch = 4096;
  spec.parallel.global_batch = 1000;
  EXPECT_NE(
      test::error_of([&] { fsdp_pipeline(spec); }).find("use parallel.global_batch=4294967296"),
      std::string::npos);
}

TEST(TorchTitan, SaysWhatDoesNotFit) {
  const auto error = [](Titan titan, const std::string& more) {
    titan.more = ", " + more;
    const std::string text = test::error_of([&] { titan.workload(); });
    return text.substr(text.find(": ") + 2);
  };
  EXPECT_EQ(error({.gpus = 8, .global_batch = 6}, "pp: 4"),
            "schedule 1f1b takes pp micro-batches or more, here 3 with pp 4; use "
            "parallel.global_batch=8");
  EXPECT_EQ(error({.gpus = 8, .global_batch = 22}, "pp: 4, schedule: interleaved"),
            "schedule interleaved takes micro-batches in so many equal rounds as pp fits into "
            "them, here 11 with pp 4; use parallel.global_batch=24");
  EXPECT_EQ(error({.gpus = 8, .global_batch = 8}, "pp: 2, schedule: dualpipe"),
            "schedule dualpipe is none that torchtitan has here; use 1f1b, interleaved, zbv or "
            "dualpipev");
  EXPECT_EQ(error({.gpus = 8, .global_batch = 8}, "pp: 3"),
            "8 GPUs are no multiple of tp 1 x pp 3; use cluster.nodes=9 or smaller dimensions");
  EXPECT_EQ(error({.gpus = 8, .global_batch = 8}, "pp: 2, schedule: interleaved, interleave: 40"),
            "2 stages of 40 chunks each make 80 parts of 34 units (layers, embedding, head); "
            "use parallel.interleave=17 or less");
  EXPECT_EQ(error({.gpus = 64, .global_batch = 64}, "pp: 64"),
            "64 stages make 64 parts of 34 units (layers, embedding, head); "
            "use parallel.pp=34 or less");
  EXPECT_EQ(error({.gpus = 8, .global_batch = 9}, "pp: 2"),
            "parallel.global_batch is 9 but micro_batch 1 x dp 4 does not divide it; use "
            "parallel.global_batch=8 or 12");
  EXPECT_EQ(error({.model = "mixtral-8x7b", .gpus = 16}, "ep: 16"),
            "parallel.ep is 16 but must divide the 16 ranks of a replica's stage, 8 experts and "
            "8192 rows that a rank routes; use parallel.ep=8");
  EXPECT_EQ(error({.gpus = 8}, "ep: 2"),
            "the model has no experts to spread; leave it out, or use a model with experts");
  EXPECT_EQ(error({.model = "gpt2", .gpus = 8}, "pp: 2"),
            "parallel.pp with framework torchtitan is available for models of architecture llama "
            "only; use parallel.pp=1, or framework: megatron");
  EXPECT_EQ(error({.model = "llama3.2-1b", .gpus = 8}, "pp: 2"),
            "torchtitan has no pipelines of models whose head shares the embedding's table; use a "
            "model with tied_embeddings: false, or parallel.pp=1");
  EXPECT_NE(error({.model = "{base: llama3-8b, mtp_layers: 1}", .gpus = 8}, "pp: 2")
                .find("models without multi-token prediction only"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
