// The memory of a GPU, against published figures and closed forms.
#include <cmath>

#include <gtest/gtest.h>

#include "profiles/planners/megatron/memory.h"
#include "profiles/planners/memory_check.h"
#include "tests/profiles/planners/megatron_support.h"

namespace ghostrank {
namespace {

constexpr double kGiga = 1e9;

// Rajbhandari et al. (SC'20), figure 1: 7.5e9 parameters on 64 GPUs with Adam in mixed precision
// take 120 GB per GPU without ZeRO, and 31.4, 16.6 and 1.9 GB in its stages 1, 2 and 3.
double zero_states(const std::string& framework) {
  const JobSpec spec =
      test::load_text(
          "model: {kind: layers, name: zero, dtype: bfloat16, layers: [{name: all, parameters: "
          "[7500000000], forward_us: 1, backward_us: 2}]}\n"
          "device: {base: v100-sxm2, memory_bytes: 0}\nprecision: {parameters: bf16}\n"
          "cluster: {nodes: 8, gpus_per_node: 8}\nparallel: {framework: " +
          framework + "}\n")
          .spec;
  JobSpec counted = spec;
  auto model = std::make_shared<Model>(*spec.model);
  model->measured = false;  // gpu_memory() counts no measured model
  counted.model = model;
  return gpu_memory(counted)->total();
}

TEST(GpuMemory, OfZeROIsThatOfItsPaper) {
  EXPECT_NEAR(zero_states("zero1") / kGiga, 31.4, .05);
  EXPECT_NEAR(zero_states("zero2") / kGiga, 16.6, .05);
  // The paper's 1.9 GB hold no gathered unit; here the model is one unit of 15 GB.
  EXPECT_NEAR(zero_states("zero3") / kGiga - 15, 1.9, .05);
}

MegatronPlan plan_of(const test::MegatronJob& job, JobSpec& spec) {
  spec = job.spec();
  return megatron_plan(spec);
}

double layer(const test::MegatronJob& job) {
  JobSpec spec;
  return megatron_layer_activations(plan_of(job, spec), false);
}

const std::string kUnfused = ", attention: unfused";

// Korthikanti et al. (2022), table 2 and equations 1 to 4, for GPT-3: s 2048, h 12288, a 96, so
// that 5 a s / h is 80.
TEST(GpuMemory, OfALayersActivationsIsKorthikantis) {
  const double sbh = 2048.0 * 12288;
  test::MegatronJob job{.model = "gpt3-175b", .more = kUnfused};
  EXPECT_DOUBLE_EQ(layer(job), sbh * (34 + 80));
  job.tp = 8;
  EXPECT_DOUBLE_EQ(layer(job), sbh * (10 + 24.0 / 8 + 80.0 / 8));
  job.sequence = true;
  EXPECT_DOUBLE_EQ(layer(job), sbh / 8 * (34 + 80));
  job.recompute = "selective";
  EXPECT_DOUBLE_EQ(layer(job), sbh / 8 * 34);
  job.recompute = "none";
  job.more = "";  // fused attention keeps no scores
  EXPECT_DOUBLE_EQ(layer(job), sbh / 8 * 34);
}

// Llama has no dropout, a gated feed-forward layer and, with 70B, 8 keys for 64 queries.
TEST(GpuMemory, OfALayerCountsItsOwnTensors) {
  const double tokens = 8192, h = 8192, kv = 1024, ffn = 28672;
  test::MegatronJob job{.model = "llama3-70b"};
  EXPECT_DOUBLE_EQ(layer(job), 2 * tokens * (4 * h + 2 * h + 2 * kv + 3 * ffn));
}

// A stage of 1F1B keeps one micro-batch for itself and one for each later stage; the last one also
// has the head: its inputs, and logits in fp32.
TEST(GpuMemory, OfAPipelineIsHeldByTheMicroBatchesUnderWay) {
  JobSpec spec;
  test::MegatronJob job{.model = "gpt3-175b",
                        .tp = 8,
                        .pp = 8,
                        .micro_batches = 32,
                        .sequence = true,
                        .sharded = true};
  const MegatronPlan plan = plan_of(job, spec);
  const double each = 12 * megatron_layer_activations(plan, false);
  for (int stage = 1; stage < 7; ++stage)
    EXPECT_DOUBLE_EQ(megatron_memory(plan, stage).activations, (8 - stage) * each) << stage;
  const double mask = 2048.0 * 12288 / 8;  // of the embedding's dropout
  EXPECT_DOUBLE_EQ(megatron_memory(plan, 0).activations, 8 * (each + mask));
  const double head = 2 * 2048 * 2 * 12288.0 / 8 + 4 * 2048 * 51200.0 / 8;
  EXPECT_DOUBLE_EQ(megatron_memory(plan, 7).activations, each + head);
  job.recompute = "full";
  const MegatronPlan again = plan_of(job, spec);
  EXPECT_DOUBLE_EQ(megatron_memory(again, 3).activations,
                   5 * 12 * 2 * 2048 * 12288.0 / 8 + megatron_layer_activations(again, false));
}

TEST(GpuMemory, OfInterleavedStagesIsMoreByTheWarmUpOfTheirChunks) {
  JobSpec spec;
  test::MegatronJob job{.model = "gpt3-175b",
                        .tp = 8,
                        .pp = 8,
                        .micro_batches = 32,
                        .sequence = true,
                        .sharded = true,
                        .more = ", schedule: interleaved, interleave: 2"};
  const MegatronPlan plan = plan_of(job, spec);
  // L layers' worth times 1 + (p - 1) / (p m); the dropout masks of 16 embeddings, two rounds of
  // eight micro-batches in the first chunk.
  const double each = 6 * megatron_layer_activations(plan, false);
  const double chunks = 8 * 2 + 8 - 1;
  const double mask = 2048.0 * 12288 / 8;
  EXPECT_DOUBLE_EQ(megatron_memory(plan, 0).activations, chunks * each + 16 * mask);
}

// A module of multi-token prediction is a layer and a projection of 2 h to h, and has a head:
// inputs of 2 h and logits in fp32.
TEST(GpuMemory, OfMultiTokenPredictionHasTheLogitsOfEveryModule) {
  JobSpec spec;
  const auto activations = [&](const std::string& layers) {
    const MegatronPlan plan = plan_of({.model = "{base: llama3-8b, " + layers + "}"}, spec);
    return megatron_memory(plan).activations;
  };
  const double tokens = 8192, h = 4096, vocabulary = 128256;
  for (const int modules : {1, 2}) {
    const double layers = activations("layers: " + std::to_string(4 + modules));
    EXPECT_DOUBLE_EQ(activations("layers: 4, mtp_layers: " + std::to_string(modules)) - layers,
                     modules * tokens * (2 * 2 * h + 2 * 2 * h + 4 * vocabulary));
  }
}

// A part of modules of multi-token prediction alone computes one of them again, too.
TEST(GpuMemory, OfFullRecomputationHasTheLargestLayerOfAPart) {
  JobSpec spec;
  const test::MegatronJob job{
      .model = "{base: llama3-8b, layers: 2, mtp_layers: 1, vocabulary: 128}",
      .pp = 2,
      .recompute = "full",
      .more = ", pipeline_model_parallel_layout: Ett|mL"};
  const MegatronPlan plan = plan_of(job, spec);
  const double inputs = 8192 * 2 * (4096 + 2 * 4096);
  EXPECT_DOUBLE_EQ(megatron_memory(plan, 1).activations,
                   inputs + megatron_layer_activations(plan, false));
}

// Bytes per parameter: weight 2, gradient 4, optimizer 12, which distributed_optimizer shards.
TEST(GpuMemory, OfStatesFollowsTheOptimizer) {
  JobSpec spec;
  test::MegatronJob job{.model = "llama3-8b", .tp = 2, .dp = 4, .per_node = 8};
  GpuMemory whole = megatron_memory(plan_of(job, spec));
  EXPECT_DOUBLE_EQ(whole.gradients, 2 * whole.weights);
  EXPECT_DOUBLE_EQ(whole.optimizer, 6 * whole.weights);
  job.sharded = true;
  GpuMemory shared = megatron_memory(plan_of(job, spec));
  EXPECT_DOUBLE_EQ(shared.optimizer, whole.optimizer / 4);
  EXPECT_DOUBLE_EQ(shared.weights, whole.weights);
}

// Eight ranks share the experts of Mixtral's 32 layers. The first gets 8 / 15 of all rows instead
// of an eighth: for each a row that arrives, one that it returns, and three inner ones.
TEST(GpuMemory, OfUnevenExpertsIsThatOfTheFullestRank) {
  JobSpec spec;
  test::MegatronJob job{
      .model = "mixtral-8x7b", .dp = 8, .more = ", expert_tp: 1, ep: 8", .per_node = 8};
  const double even = megatron_memory(plan_of(job, spec)).activations;
  job.more += ", expert_load: [8, 1, 1, 1, 1, 1, 1, 1]";
  const MegatronPlan plan = plan_of(job, spec);
  const double rows = static_cast<double>(plan.routed_rows()), most = 8 * std::round(rows * 8 / 15);
  EXPECT_NEAR(most / rows, 4.27, .01);
  EXPECT_DOUBLE_EQ(megatron_memory(plan).activations - even,
                   32 * 2 * (most - rows) * (2 * 4096 + 3 * 14336));
}

}  // namespace
}  // namespace ghostrank
