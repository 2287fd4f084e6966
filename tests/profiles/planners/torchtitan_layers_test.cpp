// TorchTitan's activation checkpointing and context parallelism against closed forms that do not
// use the planner.
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/profiles/planners/llama3_8b.h"
#include "tests/profiles/planners/titan.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::CallSums;
using test::expect_sound;
using test::kLlamaHidden;
using test::kLlamaKeys;
using test::kLlamaLayers;
using test::kLlamaTokens;
using test::sums_of;
using test::Titan;

Picoseconds computed(const Workload& workload, const std::string& label) {
  Picoseconds sum = 0;
  const Program& program = workload.roles[0].iterations[0];
  for (const Op& op : program.streams[0])
    if (op.kind == Op::Kind::compute && program.labels[op.label].starts_with(label))
      sum += op.duration;
  return sum;
}

// ---- Activation checkpointing ----

// A layer gathers and scatters twice each way. Recomputation repeats all of its forward, or only
// its gathers.
TEST(TorchTitanRecompute, PlaysAForwardAgainBeforeItsBackward) {
  for (const std::uint64_t micro_batches : {1, 3}) {
    Titan titan{.gpus = 4, .global_batch = static_cast<int>(2 * micro_batches)};
    titan.more = ", tp: 2";
    const Workload none = titan.workload();
    const CallSums sharded = sums_of(none.roles[0].iterations[0], none, "dp");
    for (const auto& [recompute, gathers, scatters] :
         {std::tuple("none", 4, 4), std::tuple("selective", 6, 4), std::tuple("full", 6, 6)}) {
      titan.more = std::string(", tp: 2, recompute: ") + recompute;
      const Workload workload = titan.workload();
      expect_sound(workload, titan.more);
      const Program& program = workload.roles[0].iterations[0];
      CallSums sums = sums_of(program, workload, "tp");
      const std::uint64_t part = micro_batches * kLlamaTokens * kLlamaHidden * 2 / 2;
      const auto calls = [](int per_layer) {
        return static_cast<std::uint64_t>(per_layer) * kLlamaLayers + 2;
      };
      EXPECT_EQ(sums.bytes[Func::all_gather], calls(gathers) * part) << recompute;
      EXPECT_EQ(sums.bytes[Func::reduce_scatter], calls(scatters) * part) << recompute;
      // The backward finds the parameters gathered already.
      EXPECT_EQ(sums_of(program, workload, "dp").bytes, sharded.bytes) << recompute;
    }
  }
}

TEST(TorchTitanRecompute, TakesTheTimeOfTheForwardOrHalfOfIt) {
  Titan titan{.gpus = 4, .global_batch = 4};
  const Picoseconds forward = computed(titan.workload(), "forward layers.");
  titan.more = ", recompute: full";
  const Workload full = titan.workload();
  EXPECT_EQ(computed(full, "again layers."), forward);
  EXPECT_EQ(computed(full, "again "), forward);  // no embedding, no head
  titan.more = ", recompute: selective";
  EXPECT_NEAR(static_cast<double>(computed(titan.workload(), "again ")),
              static_cast<double>(forward) / 2, kLlamaLayers);
}

// Framework fsdp computes the same again, and gathers nothing more: the parameters are there.
TEST(FsdpRecompute, IsThatOfTorchTitan) {
  const auto fsdp = [](const std::string& recompute) {
    return plan_workload(
        test::load_text("model: llama3-8b\ndevice: {base: h100-sxm, memory_bytes: 0}\n"
                        "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1}\n"
                        "precision: {parameters: bf16, gradients: fp32}\n"
                        "parallel: {framework: fsdp, recompute: " +
                        recompute + "}\n")
            .spec);
  };
  const auto gathered = [](const Workload& workload) {
    return sums_of(workload.roles[0].iterations[0], workload, "dp").bytes;
  };
  const Workload none = fsdp("none");
  const Picoseconds forward = computed(none, "forward layers.");
  EXPECT_EQ(computed(none, "again "), 0);
  for (const char* recompute : {"selective", "full"}) {
    const Workload workload = fsdp(recompute);
    expect_sound(workload, recompute);
    EXPECT_EQ(gathered(workload), gathered(none)) << recompute;
    const double share = recompute == std::string("full") ? 1 : 0.5;
    EXPECT_NEAR(static_cast<double>(computed(workload, "again layers.")),
                share * static_cast<double>(forward), kLlamaLayers);
    EXPECT_EQ(computed(workload, "forward layers."), forward);
  }
  EXPECT_NE(
      test::load_error("model: resnet50\ndevice: h100-sxm\ncluster: {nodes: 2, gpus_per_node: 1}\n"
                       "parallel: {framework: fsdp, recompute: full}\n")
          .find("the blocks of a transformer are computed again, and resnet50 is none; use "
                "parallel.recompute=none"),
      std::string::npos);
}

// Rows go to experts and back, forward and backward; only full recomputation sends them again.
TEST(TorchTitanRecompute, RoutesRowsAgainUnlessTheyAreKept) {
  constexpr std::uint64_t kMixtralTokens = 4096, kTopK = 2;
  for (const auto& [recompute, exchanges, counts] :
       {std::tuple("none", 4, 1), std::tuple("selective", 4, 1), std::tuple("full", 6, 2)}) {
    Titan titan{.model = "mixtral-8x7b", .gpus = 16, .global_batch = 16};
    titan.more = std::string(", ep: 4, recompute: ") + recompute;
    const Workload workload = titan.workload();
    expect_sound(workload, titan.more);
    const std::uint64_t rows = kMixtralTokens * kTopK * kLlamaHidden * 2, per_expert = 8 * 8;
    CallSums sums = sums_of(workload.roles[0].iterations[0], workload, "ep");
    EXPECT_EQ(sums.bytes[Func::all_to_all] * 4,
              kLlamaLayers * (static_cast<std::uint64_t>(exchanges) * rows +
                              static_cast<std::uint64_t>(counts) * per_expert))
        << recompute;
  }
}

TEST(TorchTitanRecompute, GoesWithPipelinesOfOnePassBackward) {
  for (const char* recompute : {"selective", "full"}) {
    for (const char* schedule : {"1f1b", "interleaved"}) {
      Titan titan{.gpus = 8, .global_batch = 16};
      titan.more =
          std::string(", pp: 4, tp: 2, schedule: ") + schedule + ", recompute: " + recompute;
      expect_sound(titan.workload(), titan.more);
    }
    Titan titan{.gpus = 8, .global_batch = 16};
    titan.more = std::string(", pp: 4, schedule: zbv, recompute: ") + recompute;
    EXPECT_NE(test::error_of([&] { titan.workload(); })
                  .find("recompute with torchtitan and schedule zbv is not available yet; use "
                        "parallel.schedule=1f1b or interleaved"),
              std::string::npos);
  }
}

// ---- Context parallelism ----

// Keys and values of a rank's tokens are gathered forward and backward, or sent on cp - 1 times;
// their gradients are sent on cp times in fp32. A recomputed forward gathers or sends again, unless
// attention is kept.
TEST(TorchTitanContext, SharesKeysAndValues) {
  for (const std::uint64_t cp : {2, 4, 8})
    for (const std::uint64_t tp : {1, 2})
      for (const auto& [recompute, times] :
           {std::pair("none", 2), std::pair("selective", 2), std::pair("full", 3)})
        for (const bool gathered : {true, false}) {
          Titan titan{.gpus = 16, .global_batch = static_cast<int>(2 * 16 / cp / tp)};
          titan.more = ", cp: " + std::to_string(cp) + ", tp: " + std::to_string(tp) +
                       ", recompute: " + recompute + (gathered ? "" : ", cp_comm: p2p");
          const Workload workload = titan.workload();
          expect_sound(workload, titan.more);
          CallSums sums = sums_of(workload.roles[0].iterations[0], workload, "cp");
          const std::uint64_t keys =
              2 * kLlamaLayers * kLlamaTokens / cp * kLlamaKeys / tp;  // two micro-batches
          const auto again = static_cast<std::uint64_t>(times);
          EXPECT_EQ(sums.bytes[Func::all_gather], gathered ? again * keys * 2 : 0) << titan.more;
          EXPECT_EQ(sums.sent, cp * keys * 4 + (gathered ? 0 : again * (cp - 1) * keys * 2))
              << titan.more;
        }
}

// All other volumes: a rank has a part of the sequence, and all cp and dp ranks of a stage shard
// the parameters together.
TEST(TorchTitanContext, SplitsTheSequenceAndSharesTheParameters) {
  Titan titan{.gpus = 16, .global_batch = 8};
  titan.more = ", pp: 2, cp: 4, reshard_after_forward: never";
  const Workload split = titan.workload();
  expect_sound(split, titan.more);
  const Program& program = split.roles[0].iterations[0];
  EXPECT_EQ(sums_of(program, split, "pp.forward").sent, 4 * kLlamaTokens / 4 * kLlamaHidden * 2);
  EXPECT_EQ(split.samples_per_iteration, 8);
  titan.global_batch = 16;
  titan.more = ", pp: 2, reshard_after_forward: never";
  const Workload whole = titan.workload();
  const CallSums sums = sums_of(program, split, "dp"),
                 others = sums_of(whole.roles[0].iterations[0], whole, "dp");
  EXPECT_EQ(sums.bytes, others.bytes);  // 8 ranks a stage either way
}

TEST(TorchTitanContext, ComputesTheSameInTotal) {
  Titan titan{.gpus = 16, .global_batch = 16};
  const Picoseconds alone = computed(titan.workload(), "forward layers.");
  titan.more = ", cp: 4";  // four micro-batches of a quarter each
  EXPECT_NEAR(static_cast<double>(computed(titan.workload(), "forward layers.")),
              static_cast<double>(alone), 1e-6 * static_cast<double>(alone));
}

TEST(TorchTitanContext, TakesItsRanksBetweenTensorAndDataParallelNeighbours) {
  Titan titan{.model = "mixtral-8x7b", .gpus = 32, .global_batch = 8};
  titan.more = ", tp: 2, cp: 2, pp: 2, dp_replicate: 2, ep: 8";
  const Workload workload = titan.workload();
  expect_sound(workload, titan.more);
  const auto members = [&](const char* name) { return test::groups_named(workload, name); };
  EXPECT_EQ(members("tp").count({0, 1}), 1u);
  EXPECT_EQ(members("cp").count({0, 2}), 1u);
  EXPECT_EQ(members("dp_shard").count({0, 2, 4, 6}), 1u);
  EXPECT_EQ(members("dp").count({0, 2, 4, 6, 8, 10, 12, 14}), 1u);
  EXPECT_EQ(members("dp_replicate").count({0, 8}), 1u);
  EXPECT_EQ(members("ep").count({0, 1, 2, 3, 4, 5, 6, 7}), 1u);
  EXPECT_EQ(members("pp.forward").count({3, 19}), 1u);
}

// Keys of 192 and values of 128 for each of 16 heads, 27 layers, 4096 tokens.
TEST(TorchTitanContext, ExpandsKeysThatComeFromALatent) {
  Titan titan{.model = "deepseek-v2-lite", .gpus = 8, .global_batch = 4};
  titan.more = ", cp: 2";
  const Workload workload = titan.workload();
  CallSums sums = sums_of(workload.roles[0].iterations[0], workload, "cp");
  EXPECT_EQ(sums.bytes[Func::all_gather], 2 * 27 * 4096 / 2 * 16 * (192 + 128) * 2u);
}

TEST(TorchTitanContext, SaysWhatDoesNotFit) {
  const auto error = [](Titan titan, const std::string& more) {
    titan.more = ", " + more;
    const std::string text = test::error_of([&] { titan.workload(); });
    return text.substr(text.find(": ") + 2);
  };
  EXPECT_EQ(error({.gpus = 8}, "cp: 3"),
            "parallel.cp is 3 but 2 x cp x tp must divide the model's sequence of 8192 tokens, and "
            "cp x tp x pp the 8 GPUs; use parallel.cp=2 or 4");
  EXPECT_EQ(error({.gpus = 8}, "cp: 2, cp_comm: a2a"),
            "torchtitan gathers keys and values or passes them round; use "
            "parallel.cp_comm=all_gather or p2p");
  EXPECT_EQ(error({.model = "gpt2", .gpus = 8}, "cp: 2"),
            "parallel.cp with framework torchtitan is available for models of architecture llama "
            "only; use parallel.cp=1, or framework: megatron");
  EXPECT_EQ(error({.gpus = 8}, "cp: 2, dp: 8"),
            "parallel.dp is 8 but the cluster has 8 GPUs with cp 2; use parallel.dp=4, or "
            "cluster.nodes=16");
}

}  // namespace
}  // namespace ghostrank
