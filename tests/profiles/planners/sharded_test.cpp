// FSDP and ZeRO against closed forms and measured volumes.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "profiles/job/job.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

using test::CallSums;

Workload plan_of(const std::string& framework, int ranks, const std::string& model,
                 const std::string& more = "") {
  return plan_workload(test::load_text("model: " + model + "\ndevice: h100-sxm\ncluster: {nodes: " +
                                       std::to_string(ranks) +
                                       ", gpus_per_node: 1, nics_per_node: 1}\n"
                                       "precision: {parameters: bf16}\n"
                                       "parallel: {framework: " +
                                       framework + more + "}\n")
                           .spec);
}

CallSums sums(const Workload& workload) {
  return test::sums_of(workload.roles[0].iterations[0], workload, "dp");
}

// CCL-Bench (arXiv 2605.06544), Llama-3.1-8B under TorchTitan. It counts an all-gather as the shard
// and a reduce-scatter as its input.
TEST(Fsdp, MovesTheVolumesMeasuredOnLlama3) {
  CallSums always = sums(plan_of("fsdp", 4, "llama3-8b"));
  EXPECT_NEAR(static_cast<double>(always.bytes[Func::all_gather]) / 8.03026e9, 1, 1e-5);
  EXPECT_NEAR(static_cast<double>(always.bytes[Func::reduce_scatter]) * 4 / 32.121e9, 1, 1e-5);
  EXPECT_EQ(always.bytes[Func::all_reduce], 4u * 291 + 8);
  CallSums kept = sums(plan_of("torchtitan", 8, "llama3-8b"));
  EXPECT_NEAR(static_cast<double>(kept.bytes[Func::all_gather]) / 3.8838e9, 1, 1e-5);
  EXPECT_NEAR(static_cast<double>(kept.bytes[Func::reduce_scatter]) * 8 / 32.121e9, 1, 1e-5);
}

// What hosts do before it is no part of the shard.
TEST(Fsdp, AndZeroStepTheOptimizerOnTheShards) {
  const std::string layers =
      "{kind: layers, layers: [{parameters: [4000]}], after_us: 70, optimizer_us: 400}";
  for (const char* framework : {"fsdp", "zero1", "zero2", "zero3"}) {
    const Workload workload = plan_of(framework, 4, layers);
    const Program& step = workload.roles[0].iterations.back();
    Picoseconds optimizer = 0;
    for (const Op& op : step.streams[0])
      if (op.kind == Op::Kind::compute && step.labels[op.label] == "optimizer")
        optimizer += op.duration;
    EXPECT_EQ(optimizer, (70 + 100) * kPicosPerMicro) << framework;
  }
}

// FSDP2 has NCCL divide sums of fp32 and bf16; it divides those of fp16 itself.
TEST(Fsdp, AveragesGradientsByTheLibrary) {
  const auto reductions = [](const std::string& type) {
    const Workload workload = plan_workload(
        test::load_text("model: gpt2\ndevice: h100-sxm\ncluster: {nodes: 4, gpus_per_node: 1, "
                        "nics_per_node: 1}\nprecision: {parameters: bf16, gradients: " +
                        type + "}\nparallel: {framework: fsdp}\n")
            .spec);
    std::set<Reduction> out;
    for (const Op& op : workload.roles[0].iterations[0].streams[1])
      if (op.kind == Op::Kind::collective && op.func == Func::reduce_scatter)
        out.insert(op.reduction);
    return out;
  };
  EXPECT_EQ(reductions("fp32"), std::set{Reduction::avg});
  EXPECT_EQ(reductions("bf16"), std::set{Reduction::avg});
  EXPECT_EQ(reductions("fp16"), std::set{Reduction::sum});
}

const char* const kUntied = "{base: gpt2, tied_embeddings: false}";

TEST(Fsdp, GathersTheNextUnitWhileOneIsComputed) {
  const Program program = plan_of("fsdp", 4, kUntied).roles[0].iterations[0];
  EXPECT_TRUE(test::streams_end(program));
  std::vector<std::string> calls;
  for (const Op& op : program.streams[1])
    if (op.kind == Op::Kind::collective) calls.push_back(program.labels[op.label]);
  ASSERT_GT(calls.size(), 20u);
  EXPECT_EQ(calls[0], "gather embeddings");
  EXPECT_EQ(calls[1], "gather h.0");
  EXPECT_EQ(calls[13], "gather head");
  EXPECT_EQ(calls[14], "gather head");  // backward
  EXPECT_EQ(calls[15], "gather h.11");
  EXPECT_EQ(calls[16], "scatter head");
  EXPECT_EQ(calls[17], "gather h.10");
}

TEST(Fsdp, GivesUnitsBackAsThePolicySays) {
  const auto gathered = [](const std::string& framework, const std::string& policy) {
    return sums(plan_of(framework, 4, kUntied, ", reshard_after_forward: " + policy))
        .calls[Func::all_gather];
  };
  for (const char* framework : {"fsdp", "torchtitan"}) {  // 14 units
    EXPECT_EQ(gathered(framework, "always"), 28u);
    EXPECT_EQ(gathered(framework, "never"), 14u);
  }
  EXPECT_EQ(gathered("fsdp", "default"), 28u);
  EXPECT_EQ(gathered("torchtitan", "default"), 27u);
}

// Embeddings and a head that share a table are one unit: the head finds it, and its gradients are
// scattered when the embeddings' are there, too.
TEST(Fsdp, KeepsATableThatTheHeadSharesUntilTheHead) {
  const auto calls = [](const std::string& framework, const std::string& policy) {
    const Program program =
        plan_of(framework, 4, "gpt2", ", reshard_after_forward: " + policy).roles[0].iterations[0];
    EXPECT_TRUE(test::streams_end(program));
    std::vector<std::string> out;
    for (const Op& op : program.streams[1])
      if (op.kind == Op::Kind::collective && op.count > 1) out.push_back(program.labels[op.label]);
    return out;
  };
  const std::vector<std::string> freed = calls("fsdp", "always");
  ASSERT_EQ(freed.size(), 13u * 3 + 1);  // and the norm
  EXPECT_EQ(freed[0], "gather embeddings");
  EXPECT_EQ(freed[12], "gather h.11");
  EXPECT_EQ(freed[13], "gather embeddings");  // for the head's backward
  EXPECT_EQ(freed[14], "gather h.11");
  EXPECT_EQ(freed[38], "scatter embeddings");
  for (const char* policy : {"default", "never"}) {
    const std::vector<std::string> kept = calls("torchtitan", policy);
    EXPECT_EQ(std::count(kept.begin(), kept.end(), "gather embeddings"), 1) << policy;
    EXPECT_EQ(std::count(kept.begin(), kept.end(), "scatter embeddings"), 1) << policy;
  }
}

TEST(Fsdp, GathersAsFarAheadAsAsked) {
  for (const int prefetch : {0, 1, 3}) {
    const Workload workload =
        plan_of("fsdp", 4, kUntied, ", prefetch: " + std::to_string(prefetch));
    const Program& program = workload.roles[0].iterations[0];
    EXPECT_TRUE(test::streams_end(program));
    std::vector<std::string> backward;
    bool began = false;
    for (const Op& op : program.streams[1]) {
      if (op.kind != Op::Kind::collective) continue;
      const std::string& name = program.labels[op.label];
      began |= !backward.empty() || (name == "gather head" && began);
      if (name == "gather head") began = true;
      if (began) backward.push_back(name);
    }
    // The list begins with the head's gathers, forward and backward; `prefetch` gathers come before
    // the scatter of the head's gradients.
    const auto scatter = std::find(backward.begin(), backward.end(), "scatter head");
    EXPECT_EQ(scatter - backward.begin(), 2 + prefetch);
    EXPECT_EQ(sums(workload).calls[Func::all_gather], 28u);
  }
}

// Each copy of the model moves the bytes of FSDP over its ranks; the copies all-reduce their
// shards.
TEST(Fsdp, ReducesShardsBetweenCopiesOfTheModel) {
  constexpr std::uint64_t kParameters = 124439808;
  const Workload workload = plan_of("fsdp", 8, "gpt2", ", dp_replicate: 2");
  const Program& program = workload.roles[0].iterations[0];
  EXPECT_TRUE(test::streams_end(program));
  CallSums shards = test::sums_of(program, workload, "dp_shard");
  CallSums copies = test::sums_of(program, workload, "dp_replicate");
  // 50,257 words are 12,565 per rank on four ranks; all other dimensions divide evenly.
  constexpr std::uint64_t kShard = (kParameters + 3 * 768) / 4;
  EXPECT_EQ(shards.bytes[Func::all_gather], 2 * kShard * 2);
  EXPECT_EQ(shards.bytes[Func::reduce_scatter], kShard * 4);
  EXPECT_EQ(copies.bytes[Func::all_reduce], shards.bytes[Func::reduce_scatter]);
  EXPECT_EQ(sums(workload).bytes[Func::all_reduce], 8u);  // the loss
  std::vector<std::vector<WorldRank>> groups;
  for (const Group& group : workload.groups) groups.push_back(group.members);
  EXPECT_EQ(groups[1], world_ranks({0, 1, 2, 3}));
  EXPECT_EQ(groups[2], world_ranks({4, 5, 6, 7}));
  EXPECT_EQ(groups[4], world_ranks({1, 5}));
  const std::string message =
      test::error_of([] { plan_of("fsdp", 12, "gpt2", ", dp_replicate: 5"); });
  EXPECT_NE(
      message.find("parallel.dp_replicate is 5 but must divide the 12 data-parallel ranks into "
                   "groups of two or more; use parallel.dp_replicate=4 or 6"),
      std::string::npos);
}

// CCL-Bench, Llama-3.1-8B under TorchTitan with tensor parallelism, 4 samples of 512 tokens.
// Activations are fp32 without FSDP and bf16 with it.
TEST(TorchTitan, MovesTheVolumesMeasuredWithTensorParallelism) {
  const auto plan = [](int gpus, const std::string& precision, const std::string& more) {
    return plan_workload(
        test::load_text("model: {base: llama3-8b, sequence: 512}\ndevice: h100-sxm\n"
                        "cluster: {nodes: 1, gpus_per_node: " +
                        std::to_string(gpus) + "}\nprecision: {parameters: " + precision +
                        "}\nparallel: {framework: torchtitan, micro_batch: 4" + more + "}\n")
            .spec);
  };
  const auto total = [](const Workload& workload, Func func, std::uint64_t dp, std::uint64_t tp) {
    const Program& program = workload.roles[0].iterations[0];
    EXPECT_TRUE(test::streams_end(program));
    return static_cast<double>(test::sums_of(program, workload, "dp").bytes[func] * dp +
                               test::sums_of(program, workload, "tp").bytes[func] * tp);
  };
  const Workload tensor = plan(4, "fp32", ", tp: 4");
  EXPECT_NEAR(total(tensor, Func::all_gather, 1, 1) / 1.09052e9, 1, 1e-5);
  EXPECT_NEAR(total(tensor, Func::reduce_scatter, 1, 4) / 4.36208e9, 1, 1e-5);
  const Workload both = plan(4, "bf16", ", tp: 2, reshard_after_forward: always");
  EXPECT_NEAR(total(both, Func::all_gather, 1, 1) / 9.12105e9, 1, 1e-5);
  EXPECT_NEAR(total(both, Func::reduce_scatter, 2, 2) / 18.2421e9, 1, 1e-5);
  EXPECT_EQ(total(both, Func::all_reduce, 1, 1), 65 * 4096 * 2 + 3 * 2048 * 4 + 2 * 4 * 291 + 8);
}

// Without shards, norm gradients stay partial sums, which three all-reduces in fp32 sum up.
TEST(TorchTitan, SumsNormGradientsThreeTimesWithoutShards) {
  for (const int tp : {2, 4, 8}) {
    const Workload workload = plan_of("torchtitan", tp, "{base: llama3-8b, sequence: 512}",
                                      ", micro_batch: 4, tp: " + std::to_string(tp));
    const Program& program = workload.roles[0].iterations[0];
    EXPECT_EQ(test::sums_of(program, workload, "tp").bytes[Func::all_reduce],
              3 * 65 * 4096 * 4 + 3 * 4 * 512 * 4 + 4 * 291u);
  }
}

// Shards consist of rows: 50,257 words are 6,283 rows per rank on 8 ranks, 16,753 on 3. GPT-2's qkv
// has 768 rows, its biases one element per row.
TEST(Fsdp, PadsTheFirstDimension) {
  const auto up = [](std::uint64_t n, std::uint64_t shards) { return (n + shards - 1) / shards; };
  for (const int ranks : {3, 5, 7, 8, 11}) {
    const auto n = static_cast<std::uint64_t>(ranks);
    const std::uint64_t h = 768, layer = up(h, n) * (3 * h + h + 4 * h) + up(4 * h, n) * h +
                                         up(3 * h, n) + up(4 * h, n) + (4 + 2) * up(h, n);
    const std::uint64_t shard = up(50257, n) * h + up(1024, n) * h + 12 * layer + 2 * up(h, n);
    CallSums moved = sums(plan_of("fsdp", ranks, "gpt2"));
    EXPECT_EQ(moved.bytes[Func::all_gather], 2 * shard * 2) << ranks;
    EXPECT_EQ(moved.bytes[Func::reduce_scatter], shard * 4) << ranks;
  }
}

// Llama: the rows of a linear layer are its outputs.
TEST(Fsdp, PadsLlamasRows) {
  const auto up = [](std::uint64_t n, std::uint64_t shards) { return (n + shards - 1) / shards; };
  for (const std::uint64_t n : {6, 12, 24}) {
    const std::uint64_t h = 4096, layer = up(4096, n) * h * 2 + up(1024, n) * h * 2 +
                                          up(14336, n) * h * 2 + up(4096, n) * 14336 + 2 * up(h, n);
    const std::uint64_t shard = 2 * up(128256, n) * h + 32 * layer + up(h, n);
    CallSums moved = sums(plan_of("fsdp", static_cast<int>(n), "llama3-8b"));
    EXPECT_EQ(moved.bytes[Func::reduce_scatter], shard * 4) << n;
  }
}

TEST(TorchTitan, SaysWhichTensorParallelismFits) {
  const auto error = [](const std::string& model, int gpus, int tp) {
    const std::string text =
        test::error_of([&] { plan_of("torchtitan", gpus, model, ", tp: " + std::to_string(tp)); });
    return text.substr(text.find(": ") + 2);
  };
  EXPECT_EQ(error("llama3-8b", 12, 3),
            "parallel.tp is 3 but must divide the 12 GPUs and the model's heads, kv_heads, ffn, "
            "sequence and vocabulary; use parallel.tp=2 or 4");
  EXPECT_NE(error("deepseek-v3", 8, 2).find("for models without latent attention and biases only"),
            std::string::npos);
}

TEST(Zero, StagesOneAndTwoAllReduceGradientsAndGatherParameters) {
  constexpr std::uint64_t kParameters = 124439808;
  for (const char* stage : {"zero1", "zero2"}) {
    const Workload workload = plan_of(stage, 8, "gpt2", ", bucket_size: 30000000");
    EXPECT_TRUE(test::streams_end(workload.roles[0].iterations[0]));
    CallSums one = sums(workload);
    EXPECT_EQ(one.bytes[Func::all_reduce], 2 * kParameters + 4);  // and the norm
    EXPECT_EQ(one.bytes[Func::all_gather], 2 * kParameters / 8);
    // No bucket exceeds the limit, except that of the token embedding alone.
    for (const Op& op : workload.roles[0].iterations[0].streams[1])
      if (op.kind == Op::Kind::collective && op.func == Func::all_reduce) {
        EXPECT_TRUE(op.count <= 30000000 || op.count == 50257 * 768) << op.count;
      }
  }
}

// DeepSpeed's communication_data_type; parameters keep their own type.
TEST(Zero, ReducesGradientsInTheTypeThatTheJobGives) {
  constexpr std::uint64_t kParameters = 124439808;
  for (const std::string stage : {"zero1", "zero2", "zero3"})
    for (const std::string whole : {"true", "false"}) {
      const Workload workload = plan_workload(
          test::load_text("model: gpt2\ndevice: h100-sxm\ncluster: {nodes: 4, gpus_per_node: 1, "
                          "nics_per_node: 1}\nprecision: {parameters: bf16, gradients: fp32}\n"
                          "parallel: {framework: " +
                          stage +
                          (stage == "zero3" ? "" : ", use_multi_rank_bucket_allreduce: " + whole) +
                          "}\n")
              .spec);
      CallSums moved = sums(workload);
      EXPECT_EQ(moved.bytes[Func::all_reduce] + moved.bytes[Func::reduce] +
                    4 * moved.bytes[Func::reduce_scatter],
                4 * kParameters + 4)
          << stage << whole;
      for (const Op& op : workload.roles[0].iterations[0].streams[1])
        if (op.kind == Op::Kind::collective) {
          EXPECT_EQ(op.dtype == DataType::bfloat16, op.func == Func::all_gather);
        }
    }
}

// Dynamic loss scaling needs to know whether a gradient overflowed. Schemes on switches take no
// bytes.
TEST(Zero, AgreesWithFp16WhetherAGradientOverflowed) {
  for (const std::string stage : {"zero1", "zero2", "zero3"})
    for (const std::string type : {"fp16", "bf16"}) {
      const Workload workload = plan_workload(
          test::load_text("model: gpt2\ndevice: h100-sxm\ncluster: {nodes: 4}\nprecision: "
                          "{parameters: " +
                          type + "}\nparallel: {framework: " + stage + "}\n")
              .spec);
      int overflows = 0;
      for (const Op& op : workload.roles[0].iterations[0].streams[1])
        overflows += op.kind == Op::Kind::collective && op.reduction == Reduction::max &&
                     op.dtype == DataType::float32;
      EXPECT_EQ(overflows, type == "fp16" ? 1 : 0) << stage;
    }
}

// Layers with fewer elements than the reuse distance (1e9 by default) between their forward and
// their backward are gathered once, others twice. The head uses the embedding's table: its backward
// follows its forward at once, so it gathers the table a third time or, if nothing is kept, a
// fourth. Gradients are scattered once.
TEST(Zero, StageThreeKeepsWhatItUsesAgainSoon) {
  const Model model = test::shipped_model("gpt2-xl");
  for (const std::uint64_t distance : {std::uint64_t{0}, std::uint64_t{300'000'000},
                                       std::uint64_t{1'000'000'000}, std::uint64_t{1} << 40}) {
    const Workload workload = plan_of(
        "zero3", 8, "gpt2-xl",
        ", stage3_prefetch_bucket_size: 0, stage3_max_reuse_distance: " + std::to_string(distance));
    EXPECT_TRUE(test::streams_end(workload.roles[0].iterations[0]));
    const std::uint64_t table = model.layers.front().parameters.front().numel;
    const std::uint64_t tables = distance == 0 ? 4 : distance <= 1'000'000'000 ? 3 : 1;
    std::uint64_t gathered = (tables - 1) * table, later = table, kept = 0;
    for (auto layer = model.layers.rbegin(); layer != model.layers.rend(); ++layer) {
      std::uint64_t all = 0, large = 0;
      for (const ParameterTensor& tensor : layer->parameters) {
        all += tensor.numel;
        (tensor.numel > 100'000 ? large : kept) += tensor.numel;
      }
      const bool first = layer + 1 == model.layers.rend();
      gathered += (2 * later < distance ? 1 : 2) * (first ? large - table : large);
      if (first) gathered += table;
      later += all;
    }
    CallSums three = sums(workload);
    EXPECT_EQ(three.bytes[Func::all_gather], (gathered + kept) * 2 / 8) << distance;
    EXPECT_EQ(three.bytes[Func::reduce_scatter], 2 * model.parameters() / 8);
    EXPECT_EQ(three.bytes[Func::all_reduce], 4u);
  }
}

TEST(Zero, StageThreePersistsSmallTensors) {
  for (const std::uint64_t threshold : {0, 3000, 10'000'000}) {
    const Workload workload =
        plan_of("zero3", 4, "gpt2",
                ", stage3_max_reuse_distance: 0, stage3_prefetch_bucket_size: 0, "
                "stage3_param_persistence_threshold: " +
                    std::to_string(threshold));
    std::uint64_t large = 50257 * 768 / 4, kept = 0, calls = 0;  // the head gathers the table, too
    for (const Layer& layer : test::shipped_model("gpt2").layers) {
      std::uint64_t here = 0;
      for (const ParameterTensor& tensor : layer.parameters) {
        const bool is_kept = tensor.numel <= threshold;
        (is_kept ? kept : here) += (tensor.numel + 3) / 4;
        calls += is_kept;
      }
      large += here;
      calls += here > 0 || layer.name == "head" ? 2 : 0;
    }
    CallSums three = sums(workload);
    EXPECT_EQ(three.bytes[Func::all_gather], (2 * large + kept) * 2) << threshold;
    EXPECT_EQ(three.calls[Func::all_gather], calls) << threshold;
  }
}

// Each fetch also gathers layers ahead until the bucket is full, in one call, or none while the
// live parameters are at their limit.
TEST(Zero, StageThreeFillsThePrefetchBucketAtEveryLayer) {
  const auto labels = [](const std::string& more) {
    const Workload workload =
        plan_of("zero3", 8, "gpt2-xl", ", stage3_max_reuse_distance: 0" + more);
    const Program& program = workload.roles[0].iterations[0];
    EXPECT_TRUE(test::streams_end(program));
    std::vector<std::string> out;
    for (const Op& op : program.streams[1])
      if (op.kind == Op::Kind::collective && op.func == Func::all_gather)
        out.push_back(program.labels[op.label]);
    return out;
  };
  // A layer has 30.7 M elements.
  const auto usual = labels("");
  EXPECT_EQ(usual[0], "gather embeddings");
  EXPECT_EQ(usual[1], "gather h.0 to h.1");
  EXPECT_EQ(usual[2], "gather h.2 to h.3");
  const auto tight = labels(", stage3_max_live_parameters: 100000000");
  EXPECT_EQ(tight[1], "gather h.0");  // the embeddings' 82 M are live, so there is room for one
  const auto none = labels(", stage3_prefetch_bucket_size: 0");
  EXPECT_EQ(none[1], "gather h.0");
  EXPECT_EQ(none[2], "gather h.1");
}

// The head's norm is never sharded and the table stays, so no gather holds its backward up.
TEST(Zero, StageThreeDoesNotWaitForLayersThatItKeeps) {
  const Workload workload = plan_of("zero3", 64, "gpt3-6.7b", ", micro_batch: 1");
  const Program& program = workload.roles[0].iterations[0];
  std::vector<std::string> ops;  // of the compute stream
  for (const Op& op : program.streams[0])
    ops.push_back(op.kind == Op::Kind::compute ? program.labels[op.label]
                  : op.kind == Op::Kind::wait  ? "wait"
                                               : "record");
  const auto backward = std::find(ops.begin(), ops.end(), "backward head");
  ASSERT_NE(backward, ops.end());
  const auto forward = std::find(ops.begin(), backward, "forward head");
  ASSERT_NE(forward, backward);
  EXPECT_EQ(std::count(forward, backward, "wait"), 0);
}

// Flat parameters in partitions of 1/8 (padded to 16): every rank gets the gradients of its own
// partition.
TEST(Zero, ReducesToEveryRankWhatItKeeps) {
  const Workload workload = plan_of("zero2", 8, "gpt2",
                                    ", bucket_size: 30000000, use_multi_rank_bucket_allreduce: "
                                    "false");
  const Program& program = workload.roles[0].iterations[0];
  EXPECT_TRUE(test::streams_end(program));
  std::map<std::int32_t, std::uint64_t> of_rank;
  for (const Op& op : program.streams[1])
    if (op.kind == Op::Kind::collective && op.func == Func::reduce) of_rank[op.peer] += op.count;
  const std::uint64_t all = 124439808, partition = (all + 15) / 16 * 16 / 8;
  ASSERT_EQ(of_rank.size(), 8u);
  for (const auto& [rank, numel] : of_rank)
    EXPECT_EQ(numel, rank < 7 ? partition : all - 7 * partition);
  EXPECT_EQ(sums(workload).calls[Func::all_reduce], 1u);  // the norm
}

// With overlap the backward waits for the previous bucket, without overlap for every bucket.
TEST(Zero, WaitsForBucketsAsToldTo) {
  const auto last_wait = [](const char* overlap) {
    const Program program =
        plan_of("zero1", 8, "gpt2",
                std::string(", bucket_size: 30000000, overlap_comm: ") + overlap)
            .roles[0]
            .iterations[0];
    EXPECT_TRUE(test::streams_end(program));
    std::size_t waits = 0, computes = 0, before = 0;
    for (const Op& op : program.streams[0]) {
      if (op.kind == Op::Kind::compute) ++computes;
      if (op.kind != Op::Kind::wait) continue;
      if (waits++ == 0) before = computes;
    }
    return std::pair{waits, before};
  };
  const auto [waits, first] = last_wait("false");
  const auto [overlapped, later] = last_wait("true");
  EXPECT_GT(waits, 3u);
  EXPECT_LT(first, later);
  EXPECT_LE(overlapped, waits);
}

TEST(Sharded, TakesAllGpus) {
  const std::string message = test::error_of([] { plan_of("zero3", 8, "gpt2", ", dp: 4"); });
  EXPECT_EQ(message.substr(message.find("job.yaml")),
            "job.yaml:5:34: parallel.dp is 4 but the cluster has 8 GPUs; use parallel.dp=8, or "
            "cluster.nodes=4");
}

}  // namespace
}  // namespace ghostrank
