// Unequal pipeline stages against results of Megatron-core's and TorchTitan's rules by hand, and
// multi-token prediction against closed forms that do not use the planner.
#include "profiles/planners/pipeline/layer_split.h"

#include <numeric>

#include <gtest/gtest.h>

#include "profiles/planners/megatron/plan.h"
#include "tests/profiles/planners/megatron_support.h"
#include "tests/profiles/programs.h"

namespace ghostrank {
namespace {

using test::CallSums;
using test::sums_of;
using Plan = test::MegatronJob;
using Layers = std::vector<int>;

std::vector<Part> parts_of(Plan plan, const std::string& more) {
  plan.more = ", " + more;
  return megatron_plan(plan.spec()).parts;
}

Layers layers_of(const std::vector<Part>& parts) {
  Layers out;
  for (const Part& part : parts) out.push_back(part.layers);
  return out;
}

// ---- Megatron's keys ----

TEST(LayerSplit, CountsEmbeddingAndLossAsLayersWhereAsked) {
  // Llama-3 405B: 126 layers in 16 stages, that is in 128 parts whose outer two hold no layer.
  Plan plan{.model = "llama3.1-405b", .tp = 8, .pp = 16, .micro_batches = 16};
  const std::string both =
      "account_for_embedding_in_pipeline_split: true, account_for_loss_in_pipeline_split: true";
  Layers expected(16, 8);
  expected.front() = expected.back() = 7;
  EXPECT_EQ(layers_of(parts_of(plan, both)), expected);
  const auto cut = parts_of(plan, both + ", schedule: interleaved, interleave: 8");
  ASSERT_EQ(cut.size(), 128u);
  EXPECT_EQ(cut.front().layers + cut.back().layers, 0);
  EXPECT_EQ(cut[1].first_layer, 0);
  EXPECT_EQ(cut[126].first_layer, 125);
}

TEST(LayerSplit, GivesTheEndsTheLayersThatTheyAreToHave) {
  Plan deepseek{.model = "{base: deepseek-v3, experts: {count: 0}}", .pp = 16, .micro_batches = 16};
  Layers expected(16, 4);
  expected.back() = 1;
  EXPECT_EQ(layers_of(parts_of(deepseek, "decoder_last_pipeline_num_layers: 1")), expected);
  expected.front() = 3;
  expected.back() = 2;
  EXPECT_EQ(layers_of(parts_of(deepseek,
                               "decoder_first_pipeline_num_layers: 3, "
                               "decoder_last_pipeline_num_layers: 2")),
            expected);
  // The chunks of a stage share its layers; a chunk continues after the previous stage's chunk.
  const auto parts = parts_of({.pp = 4, .micro_batches = 8},
                              "decoder_first_pipeline_num_layers: 4, "
                              "decoder_last_pipeline_num_layers: 12, schedule: interleaved, "
                              "interleave: 2");
  EXPECT_EQ(layers_of(parts), (Layers{2, 4, 4, 6, 2, 4, 4, 6}));
  EXPECT_EQ(parts[5].first_layer, 18);
  EXPECT_EQ(layers_of(parts_of({.pp = 2, .micro_batches = 2},
                               "decoder_first_pipeline_num_layers: 12, "
                               "decoder_last_pipeline_num_layers: 20")),
            (Layers{12, 20}));
}

TEST(LayerSplit, FollowsALayoutLetterByLetter) {
  EXPECT_EQ(unrolled_layout("Et*3|(tt|)*2,m|L"), "Ettt|tt|tt|m|L");
  EXPECT_EQ(unrolled_layout("xy(ab|cd)*2,p"), "xyab|cdab|cdp");
  EXPECT_EQ(unrolled_layout("(t*2|)*2"), "tt|tt|");
  EXPECT_EQ(unrolled_layout("t*1000000"), "");

  const auto parts =
      parts_of({.model = "{base: llama3-8b, mtp_layers: 1}", .pp = 4, .micro_batches = 8},
               "pipeline_model_parallel_layout: 'Et*3|(t*5|)*5,tttt|mL', schedule: "
               "interleaved");
  EXPECT_EQ(layers_of(parts), (Layers{3, 5, 5, 5, 5, 5, 4, 0}));
  EXPECT_EQ(parts[6].first_layer, 28);
  EXPECT_TRUE(parts[6].final_norm);
  EXPECT_FALSE(parts[7].final_norm);
  EXPECT_EQ(parts[7].mtp, 1);
  EXPECT_EQ(parts[7].units(), 2);
  const auto v = parts_of({.pp = 2, .micro_batches = 4},
                          "pipeline_model_parallel_layout: 'Et*7|t*9|t*9|t*7,L', schedule: zbv");
  EXPECT_EQ(layers_of(v), (Layers{7, 9, 9, 7}));
}

TEST(LayerSplit, MovesAndReducesTheSameHoweverLayersAreSplit) {
  const auto totals = [](const std::string& more) {
    Plan plan{.tp = 2, .pp = 4, .dp = 2, .micro_batches = 8, .sequence = true};
    plan.more = more;
    const Workload workload = plan.workload();
    EXPECT_EQ(test::unmatched_transfers(workload), "");
    std::map<std::string, std::uint64_t> bytes;
    for (const Role& role : workload.roles) {
      EXPECT_TRUE(test::streams_end(role.iterations[0])) << role.name;
      for (const char* group : {"tp", "dp"})
        for (const auto& [func, sum] : sums_of(role.iterations[0], workload, group).bytes)
          bytes[std::string(group) + " " + std::string(name_of(func))] += sum;
    }
    return bytes;
  };
  const auto expected = totals("");
  for (const char* more :
       {", decoder_first_pipeline_num_layers: 5", ", decoder_last_pipeline_num_layers: 2",
        ", decoder_first_pipeline_num_layers: 4, decoder_last_pipeline_num_layers: 4, schedule: "
        "interleaved, interleave: 2",
        ", pipeline_model_parallel_layout: 'E|t*20|t*12|L'",
        ", pipeline_model_parallel_layout: 'Et*5|t*3|t*8|t|t|t|t*6|t*7L', schedule: interleaved",
        ", pipeline_model_parallel_layout: 'Et*9|t*8|t*7|t*8L', schedule: zb-h1",
        ", pipeline_model_parallel_layout: 'Et*9|t*8|t*7|||t*3|t*4|tL', schedule: zbv",
        ", pipeline_model_parallel_layout: 'Et*9|t*8|t*7|||t*3|t*4|tL', schedule: dualpipev"})
    EXPECT_EQ(totals(more), expected) << more;
}

TEST(LayerSplit, SaysWhatDoesNotFitAndWhatWould) {
  const auto error = [](Plan plan, const std::string& more) {
    plan.more = more.empty() ? "" : ", " + more;
    const std::string text = test::error_of([&] { plan.workload(); });
    return text.substr(text.find(": ") + 2);
  };
  const Plan deepseek{.model = "deepseek-v3", .pp = 16, .micro_batches = 16};
  EXPECT_EQ(error(deepseek, ""),
            "parallel.pp is 16 but does not divide 61 layers; use parallel.pp=1 or 61, or unequal "
            "parts: parallel.decoder_last_pipeline_num_layers=1, "
            "decoder_first_pipeline_num_layers, account_for_embedding_in_pipeline_split, "
            "account_for_loss_in_pipeline_split or pipeline_model_parallel_layout");
  EXPECT_EQ(error({.model = "llama3.1-405b", .tp = 8, .pp = 16, .micro_batches = 32},
                  "schedule: dualpipev"),
            "parallel.pp is 16 but does not divide 126 layers into 2 parts per stage; use "
            "parallel.pp=9 or 21, or unequal parts: parallel.pipeline_model_parallel_layout");
  // A single stage has no such schedule.
  EXPECT_EQ(error({.model = "deepseek-v2-lite", .pp = 2, .micro_batches = 4}, "schedule: zbv"),
            "parallel.pp is 2 but does not divide 27 layers into 2 parts per stage; use unequal "
            "parts: parallel.pipeline_model_parallel_layout");
  EXPECT_EQ(error(deepseek, "decoder_last_pipeline_num_layers: 3"),
            "parallel.decoder_last_pipeline_num_layers: 61 layers without 3 leave 58 for the other "
            "15 stages, who must have as many each; change it by 13");
  EXPECT_EQ(error(deepseek, "decoder_last_pipeline_num_layers: 64"),
            "parallel.decoder_last_pipeline_num_layers: the first stage and the last would have 64 "
            "of the model's 61 layers; use fewer");
  EXPECT_EQ(error({.pp = 2, .micro_batches = 2},
                  "decoder_first_pipeline_num_layers: 20, decoder_last_pipeline_num_layers: 20"),
            "parallel.decoder_first_pipeline_num_layers: the first stage and the last would have "
            "40 of the model's 32 layers; use 32 in all");
  EXPECT_EQ(error({.pp = 2, .micro_batches = 2},
                  "decoder_last_pipeline_num_layers: 3, account_for_loss_in_pipeline_split: true"),
            "parallel.decoder_last_pipeline_num_layers: it cannot stand beside "
            "account_for_embedding_in_pipeline_split or account_for_loss_in_pipeline_split; leave "
            "out either");
  EXPECT_EQ(error({.pp = 2, .micro_batches = 4},
                  "decoder_last_pipeline_num_layers: 15, schedule: interleaved, interleave: 2"),
            "parallel.interleave: a stage has 17 layers, which 2 chunks do not divide; use "
            "parallel.pipeline_model_parallel_layout");
  EXPECT_EQ(error({.pp = 2, .micro_batches = 4},
                  "decoder_last_pipeline_num_layers: 15, "
                  "schedule: zbv"),
            "parallel.decoder_last_pipeline_num_layers: schedule zbv has the first layers and the "
            "last on one stage; use parallel.pipeline_model_parallel_layout");
  const auto layout = [&](const std::string& text, const std::string& more = "") {
    return error({.pp = 2, .micro_batches = 4},
                 "pipeline_model_parallel_layout: '" + text + "'" + more);
  };
  const std::string key = "parallel.pipeline_model_parallel_layout: ";
  EXPECT_EQ(layout("Et*16|t*16|L"),
            key + "it has 3 parts but schedule 1f1b with pp 2 has 2; they must be as many");
  EXPECT_EQ(layout("Et*8|t*8|t*8|t*8L"),
            key +
                "it has 4 parts but schedule 1f1b with pp 2 has 2; use "
                "parallel.schedule=interleaved");
  EXPECT_EQ(layout("Et*16|t*15L"), key +
                                       "it has 31 t and 0 m but the model 32 layers and 0 "
                                       "mtp_layers; they must be as many");
  EXPECT_EQ(layout("t*16|Et*16L"), key + "it begins with the one E and ends with the one L");
  EXPECT_NE(layout("Et*16|x*16L").find("'x' stands for nothing; write E (embedding)"),
            std::string::npos);
  EXPECT_NE(layout("Et*16|t*16L", ", decoder_first_pipeline_num_layers: 1").find("it says all"),
            std::string::npos);
  EXPECT_EQ(error({.model = "{base: llama3-8b, mtp_layers: 2}", .pp = 2, .micro_batches = 4},
                  "pipeline_model_parallel_layout: 'Et*32m|mL'"),
            key + "modules of mtp stand in several parts; put all into one");
}

TEST(LayerSplit, RefusesMultiTokenPredictionThatMegatronLacks) {
  const auto refused = [](const std::string& change) {
    const Plan plan{.model = "{base: llama3-8b, mtp_layers: 1, " + change + "}"};
    return test::error_of([&] { plan.workload(); });
  };
  EXPECT_NE(refused("position_embeddings: learned")
                .find("no multi-token prediction with learned positions; use position_embeddings: "
                      "rope, or mtp_layers: 0"),
            std::string::npos);
  EXPECT_NE(refused("tied_embeddings: true").find("with tied embeddings is not available"),
            std::string::npos);
  EXPECT_EQ(refused("position_embeddings: none"), "");
}

// ---- TorchTitan's rule ----

TEST(LayerSplit, SpreadsLayersAsTorchTitanDoes) {
  const JobSpec spec = Plan{}.spec();
  Transformer model;
  const auto split = [&](std::uint64_t layers, int stages, int chunks) {
    model.layers = layers;
    return layers_of(split_as_torchtitan(spec, model, {"interleaved", stages, chunks, 1}));
  };
  // 32 layers and the two ends are 34 units: 9, 9, 8, 8.
  EXPECT_EQ(split(32, 4, 1), (Layers{8, 9, 8, 7}));
  EXPECT_EQ(split(32, 2, 2), (Layers{8, 9, 8, 7}));
  EXPECT_EQ(split(6, 4, 1), (Layers{1, 2, 2, 1}));
  EXPECT_EQ(split(126, 16, 1), (Layers{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7}));
  EXPECT_EQ(split(5, 1, 1), (Layers{5}));
}

// ---- Multi-token prediction ----

// Per module and micro-batch under sequence parallelism: its layer; the embedding like the model's
// own; the projection of two widths, which gathers them forward and again backward, scatters them,
// and gathers its output's width; a head of its own, without the embedding's part.
TEST(MultiTokenPrediction, MovesTheBytesOfTheClosedForm) {
  constexpr std::uint64_t kLayers = 32, kHidden = 4096, kTokens = 8192, kM = kTokens * kHidden * 2;
  for (const int depth : {1, 2})
    for (const int pp : {1, 4})
      for (const bool sequence : {false, true}) {
        const auto d = static_cast<std::uint64_t>(depth);
        Plan plan{.model = "{base: llama3-8b, mtp_layers: " + std::to_string(depth) + "}",
                  .tp = 4,
                  .pp = pp,
                  .micro_batches = 4,
                  .sequence = sequence};
        const Workload workload = plan.workload();
        std::uint64_t gathered = 0, scattered = 0, reduced = 0;
        for (const Role& role : workload.roles) {
          EXPECT_TRUE(test::streams_end(role.iterations[0]));
          CallSums sums = sums_of(role.iterations[0], workload, "tp");
          gathered += 4 * sums.bytes[Func::all_gather];
          scattered += 4 * sums.bytes[Func::reduce_scatter];
          reduced += sums.bytes[Func::all_reduce];
        }
        const std::uint64_t best = 4 * kTokens * (2 + 8), loss = 3 * kTokens * 4;
        if (sequence) {
          EXPECT_EQ(gathered,
                    4 * ((6 * kLayers + 3 + d * (6 + 2 + 1 + 1 + 2 + 1 + 2)) * kM + d * best));
          EXPECT_EQ(scattered, 4 * (4 * kLayers + 2 + d * (4 + 1 + 2 + 1)) * kM);
          EXPECT_EQ(reduced, 4 * (1 + d) * loss + (2 * kLayers + 1 + 5 * d) * kHidden * 4);
        } else {
          EXPECT_EQ(gathered, 4 * d * (kM + best));
          EXPECT_EQ(scattered, 0u);
          EXPECT_EQ(reduced, 4 * ((4 * kLayers + 2 + d * (4 + 1 + 2 + 1)) * kM + (1 + d) * loss));
        }
      }
}

TEST(MultiTokenPrediction, KeepsACopyOfTheEmbeddingAlike) {
  constexpr std::uint64_t kTable = 128'256 * 4096u, kLayer = 218'112'000;
  Plan plan{.model = "{base: llama3-8b, mtp_layers: 1}", .pp = 4, .dp = 2, .micro_batches = 4};
  const Workload workload = plan.workload();
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const Program& program = workload.roles[stage].iterations[0];
    EXPECT_EQ(sums_of(program, workload, "embedding").bytes[Func::all_reduce],
              stage == 0 || stage == 3 ? kTable * 4 : 0);
    // The last stage holds the copy of the embedding, its layers, a layer with a projection and
    // three norms, norm and head.
    const std::uint64_t held =
        8 * kLayer + (stage == 0   ? kTable
                      : stage == 3 ? 2 * kTable + kLayer + 2 * 4096u * 4096u + 4 * 4096u
                                   : 0);
    EXPECT_EQ(sums_of(program, workload, "dp").bytes[Func::all_reduce],
              held * 4 + (stage == 3 ? 8 : 0));
  }
  // No copy where one stage holds both ends: without a pipeline, or in a V.
  for (const char* more : {"", ", schedule: zbv"}) {
    Plan together{.model = "{base: llama3-8b, mtp_layers: 1}", .dp = 2, .micro_batches = 4};
    if (*more != 0) together.pp = 4;
    together.more = more;
    const auto& names = together.workload().group_names;
    EXPECT_EQ(std::count(names.begin(), names.end(), "embedding"), 0) << more;
  }
}

// A stage with a module and without the head sends the hidden states of all depths. A message with
// its shape precedes each message.
TEST(MultiTokenPrediction, SendsEveryDepthToAHeadElsewhere) {
  constexpr std::uint64_t kM = 8192u * 4096 * 2, kShape = 24;
  Plan plan{.model = "{base: llama3-8b, mtp_layers: 1}", .pp = 4, .micro_batches = 4};
  plan.more = ", pipeline_model_parallel_layout: 'Et*16|t*16|m|L'";
  const Workload workload = plan.workload();
  EXPECT_EQ(test::unmatched_transfers(workload), "");
  const std::uint64_t expected[] = {kM + kShape, kM + kShape, 2 * kM + kShape, 0};
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const Program& program = workload.roles[stage].iterations[0];
    EXPECT_EQ(sums_of(program, workload, "pp.forward").sent, 4 * expected[stage]);
    EXPECT_EQ(sums_of(program, workload, "pp.backward").received, 4 * expected[stage]);
    EXPECT_EQ(sums_of(program, workload, "embedding").bytes[Func::all_reduce],
              stage % 2 == 0 ? 128'256 * 4096u * 4 : 0u);
  }
}

TEST(MultiTokenPrediction, PlaysWithEverySchedule) {
  for (const char* schedule :
       {"1f1b", "zb-h1", "zbv", "dualpipe", "dualpipev", "interleaved, interleave: 2"})
    for (const char* recompute : {"none", "full"}) {
      Plan plan{.model = "{base: mixtral-8x7b, mtp_layers: 1}",
                .tp = 2,
                .pp = 4,
                .dp = 2,
                .micro_batches = 8,
                .sequence = true,
                .sharded = true,
                .recompute = recompute};
      plan.more = std::string(", ep: 4, expert_tp: 1, schedule: ") + schedule;
      const Workload workload = plan.workload();
      for (const Role& role : workload.roles)
        EXPECT_TRUE(test::streams_end(role.iterations[0])) << schedule;
      EXPECT_EQ(test::unmatched_transfers(workload), "") << schedule;
    }
}

// The published weights beyond the model's own: one more layer, the projection of two widths and
// three norms.
TEST(MultiTokenPrediction, AddsItsLayerToTheModel) {
  const auto parameters = [](const char* model) {
    return Plan{.model = model}.spec().model->parameters();
  };
  EXPECT_EQ(parameters("{base: deepseek-v3, mtp_layers: 1}") - parameters("deepseek-v3"),
            11'507'286'272 + 2u * 7168 * 7168 + 3 * 7168);
  EXPECT_NE(test::error_of([&] {
              parameters("{base: gpt2, mtp_layers: 1}");
            }).find("architecture gpt2 has no multi-token prediction"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
