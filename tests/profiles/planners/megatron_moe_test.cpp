// Uneven experts, latent attention and dualpipe against closed forms that do not use the planner.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "profiles/planners/megatron/plan.h"
#include "profiles/planners/megatron/routing.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/planners/megatron_support.h"
#include "tests/profiles/programs.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

using test::CallSums;
using test::sums_of;
using Plan = test::MegatronJob;

// ---- Uneven routing ----

// The count lists that the ops of one kind of group use, each with its number of uses.
std::map<std::uint32_t, int> lists_of(const Workload& workload, const Program& program,
                                      const std::string& group) {
  std::map<std::uint32_t, int> lists;
  for (const auto& stream : program.streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::collective && op.func == Func::all_to_all_v &&
          workload.group_names[op.group] == group)
        ++lists[op.counts];
  return lists;
}

TEST(Apportioned, GivesWholeNumbersThatAddUp) {
  EXPECT_EQ(apportioned(10, {1, 1, 1}), (std::vector<std::uint64_t>{4, 3, 3}));
  EXPECT_EQ(apportioned(7, {0, 5, 2}), (std::vector<std::uint64_t>{0, 5, 2}));
  EXPECT_EQ(apportioned(100, {1, 2, 4.5}), (std::vector<std::uint64_t>{13, 27, 60}));
  EXPECT_EQ(apportioned(0, {3, 1}), (std::vector<std::uint64_t>{0, 0}));
}

TEST(ExpertLoad, DecidesWhatEveryRankSendsToEveryOther) {
  constexpr std::uint64_t kRows = 4096 * 2, kHidden = 4096;  // tokens x top_k
  Plan plan{.model = "mixtral-8x7b", .dp = 4, .micro_batches = 3};
  plan.more = ", ep: 4, expert_load: [1, 1, 2, 0, 3, 1, 0, 0]";
  const Workload workload = plan.workload();
  ASSERT_EQ(workload.roles.size(), 4u);  // experts with different amounts of work
  const std::uint64_t rows[] = {kRows * 2 / 8, kRows * 2 / 8, kRows * 4 / 8, 0};
  const Program& program = workload.roles[0].iterations[0];
  std::uint64_t there = 0, back = 0, weights = 0;
  for (const auto& [list, calls] : lists_of(workload, program, "ep")) {
    const auto& counts = *workload.counts[list];
    ASSERT_EQ(counts.size(), 16u);
    const std::uint64_t width = counts[0] / rows[0];
    EXPECT_NE(counts[2], counts[8]);
    const bool outward = counts[2] > counts[8];
    for (std::size_t from = 0; from < 4; ++from)
      for (std::size_t to = 0; to < 4; ++to)
        EXPECT_EQ(counts[from * 4 + to], (outward ? rows[to] : rows[from]) * width);
    (width == 1 ? weights : outward ? there : back) += static_cast<std::uint64_t>(calls);
    EXPECT_TRUE(width == 1 || width == kHidden);
  }
  // Per layer and micro-batch: rows out and back, forward and backward, and probabilities.
  EXPECT_EQ(there, 3 * 32 * 2u);
  EXPECT_EQ(back, 3 * 32 * 2u);
  EXPECT_EQ(weights, 3 * 32 * 2u);
}

Picoseconds compute_of(const Program& program) {
  Picoseconds sum = 0;
  for (const Op& op : program.streams[0])
    if (op.kind == Op::Kind::compute) sum += op.duration;
  return sum;
}

TEST(ExpertLoad, MovesWorkToWhereTheRowsGo) {
  Plan plan{.model = "mixtral-8x7b", .dp = 2, .micro_batches = 1};
  plan.more = ", ep: 2, expert_load: [3, 3, 3, 3, 1, 1, 1, 1]";
  const Workload uneven = plan.workload();
  plan.more = ", ep: 2";
  const Workload even = plan.workload();
  const auto time = [](const Workload& workload, std::size_t role) {
    return static_cast<double>(compute_of(workload.roles[role].iterations[0]));
  };
  EXPECT_GT(time(uneven, 0), time(even, 0));
  EXPECT_NEAR(time(uneven, 0) + time(uneven, 1), 2 * time(even, 0), 1e6);
}

TEST(ExpertLoad, IsDrawnFromTheSeedLayerByLayer) {
  Plan plan{.model = "deepseek-v2-lite", .dp = 8, .micro_batches = 1};
  const auto counts = [&](const std::string& more) {
    plan.more = ", ep: 8" + more;
    std::vector<std::vector<std::uint64_t>> all;
    for (const Counts& list : plan.workload().counts) all.push_back(*list);
    return all;
  };
  EXPECT_TRUE(counts("").empty());
  const auto drawn = counts(", expert_imbalance: 0.5");
  EXPECT_EQ(drawn, counts(", expert_imbalance: 0.5"));
  EXPECT_EQ(drawn.size(), 26 * 4u);  // the first layer is dense
  EXPECT_NE(drawn[0], drawn[4]);
  constexpr std::uint64_t kRows = 4096 * 6, kHidden = 2048;
  for (std::size_t i = 0; i < drawn.size(); i += 4)
    EXPECT_EQ(std::accumulate(drawn[i].begin(), drawn[i].begin() + 8, std::uint64_t{0}),
              kRows * kHidden);
  // The spread of the loads of 64 experts, eight per rank, is about the one asked for.
  double square = 0;
  for (std::size_t i = 0; i < drawn.size(); i += 4)
    for (std::size_t to = 0; to < 8; ++to) {
      const double share = static_cast<double>(drawn[i][to]) * 8 / (kRows * kHidden) - 1;
      square += share * share / (26 * 8);
    }
  EXPECT_NEAR(std::sqrt(square), 0.5 / std::sqrt(8), 0.05);
}

TEST(ExpertLoad, PlaysWithEveryOtherDimension) {
  for (const char* schedule : {"1f1b", "zbv", "dualpipe"}) {
    Plan plan{.model = "mixtral-8x7b",
              .tp = 2,
              .pp = 4,
              .dp = 4,
              .micro_batches = 8,
              .sequence = true,
              .sharded = true};
    plan.more = std::string(", ep: 4, expert_tp: 2, expert_imbalance: 0.7, schedule: ") + schedule;
    const Workload workload = plan.workload();
    EXPECT_EQ(workload.roles.size(), 16u);
    for (const Role& role : workload.roles)
      EXPECT_TRUE(test::streams_end(role.iterations[0])) << role.name;
    EXPECT_EQ(test::unmatched_transfers(workload), "");
  }
}

TEST(ExpertLoad, IsRefusedWhereItDoesNotFit) {
  const auto error = [](const std::string& more, const char* model = "mixtral-8x7b") {
    Plan plan{.model = model, .dp = 4, .more = ", " + more};
    const std::string text = test::error_of([&] { plan.workload(); });
    return text.substr(text.find("parallel."));
  };
  EXPECT_EQ(error("ep: 4, expert_load: [1, 2, 3]"),
            "parallel.expert_load: a list has 3 loads but the model 8 experts; give one for each");
  EXPECT_EQ(error("ep: 4, expert_load: [[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1]]"),
            "parallel.expert_load: there are 2 lists but the model has 32 layers with experts; "
            "give one list, or one for each of them");
  EXPECT_EQ(error("ep: 4, expert_load: [0, 0, 0, 0, 0, 0, 0, 0]"),
            "parallel.expert_load: all loads of a list are 0; some expert has to work");
  EXPECT_EQ(error("ep: 4, expert_imbalance: 1, expert_load: [1, 1, 1, 1, 1, 1, 1, 1]"),
            "parallel.expert_load: the loads are given, so there is nothing to draw; leave out "
            "parallel.expert_imbalance");
  EXPECT_NE(test::error_of([&] {
              Plan{.dp = 4, .more = ", ep: 4, expert_imbalance: 1"}.workload();
            }).find("the model has no experts to spread"),
            std::string::npos);
}

// ---- Latent attention ----

// DeepSeek-V3 as published, without its multi-token prediction. The router's biases are not
// reduced, so they do not count as parameters.
TEST(LatentAttention, HasTheParametersOfDeepSeek) {
  struct Published {
    const char* model;
    std::uint64_t parameters;
  };
  for (const Published& one :
       {Published{"deepseek-v3", 671'026'404'352}, Published{"deepseek-v2-lite", 15'706'484'224}}) {
    const JobSpec spec = Plan{.model = one.model}.spec();
    const MegatronPlan plan = megatron_plan(spec);
    std::uint64_t numel = 0;
    for (const Parameter& p : megatron_parameters(plan, plan.parts[0])) numel += p.numel;
    const Transformer& m = *spec.model->transformer;
    const std::uint64_t padding = 2 * (plan.vocabulary - m.vocabulary) * m.hidden;
    EXPECT_EQ(numel - padding, one.parameters) << one.model;
  }
}

// Per layer and micro-batch under sequence parallelism. Forward: gather the rotary part and both
// latents (the hidden states where queries have no latent), scatter the output. Backward: gather
// the output's gradient and each projection's input again, scatter its gradient.
TEST(LatentAttention, GathersLatentsInPlaceOfHiddenStates) {
  for (const char* model : {"deepseek-v3", "deepseek-v2-lite"})
    for (const int tp : {2, 4}) {
      Plan plan{.model = "{base: " + std::string(model) + ", experts: {count: 0}, ffn: 8192}",
                .tp = tp,
                .micro_batches = 3,
                .sequence = true};
      const JobSpec spec = plan.spec();
      const Transformer& m = *spec.model->transformer;
      const Workload workload = plan_workload(spec);
      CallSums sums = sums_of(workload.roles[0].iterations[0], workload, "tp");
      const std::uint64_t tokens = m.sequence, layers = m.layers;
      const std::uint64_t queries = m.latent.q_lora > 0 ? m.latent.q_lora : m.hidden;
      const std::uint64_t latents = queries + m.latent.kv_lora, h = m.hidden, rope = m.latent.rope;
      const std::uint64_t gathered =
          layers * (rope + latents + h + latents)  // attention; its output's gradient
          + layers * 3 * h                         // feed-forward
          + 3 * h;                                 // embedding and head
      const std::uint64_t scattered = layers * (h + latents + rope) + layers * 2 * h + 2 * h;
      const auto shards = static_cast<std::uint64_t>(tp);
      EXPECT_EQ(sums.bytes[Func::all_gather] * shards, 3 * 2 * tokens * gathered) << model;
      EXPECT_EQ(sums.bytes[Func::reduce_scatter] * shards, 3 * 2 * tokens * scattered) << model;
      // Tensors that every rank holds whole: both norms, the down-projections and the latents'
      // norms.
      const std::uint64_t down =
          (m.latent.q_lora + m.latent.kv_lora + rope) * h + m.latent.q_lora + m.latent.kv_lora;
      EXPECT_EQ(sums.bytes[Func::all_reduce],
                (layers * (2 * h + down) + h) * 4 + 3 * 3 * tokens * 4);
    }
}

TEST(LatentAttention, ReducesWithoutSequenceParallelism) {
  Plan plan{.model = "{base: deepseek-v3, experts: {count: 0}}", .tp = 4, .micro_batches = 2};
  const Workload workload = plan.workload();
  CallSums sums = sums_of(workload.roles[0].iterations[0], workload, "tp");
  constexpr std::uint64_t kTokens = 4096, kHidden = 7168, kLatents = 1536 + 512;
  EXPECT_EQ(sums.bytes[Func::all_gather] + sums.bytes[Func::reduce_scatter], 0u);
  EXPECT_EQ(sums.bytes[Func::all_reduce],
            2 * kTokens * (2 * (61 * (3 * kHidden + kLatents) + 2 * kHidden) + 3 * 4));
}

// ---- DualPipe ----

TEST(DualPipePlans, ReduceEveryPartOverTheTwoStagesThatHoldIt) {
  Plan plan{.model = "{base: llama3-8b, layers: 8}", .pp = 4, .dp = 2, .micro_batches = 8};
  plan.more = ", schedule: dualpipe";
  const Workload workload = plan.workload();
  std::set<std::vector<int>> holders;
  for (const Group& group : workload.groups)
    if (workload.group_names[group.kind] == "dp") holders.insert(numbers_of(group.members));
  EXPECT_EQ(holders, (std::set<std::vector<int>>{{0, 1, 6, 7}, {2, 3, 4, 5}}));
  constexpr std::uint64_t kLayer = 218'112'000, kTable = 128'256 * 4096u;
  for (int stage = 0; stage < 4; ++stage) {
    const Program& program = workload.roles[stage].iterations[0];
    const bool ends = stage == 0 || stage == 3;
    EXPECT_EQ(sums_of(program, workload, "dp").bytes[Func::all_reduce],
              4 * (4 * kLayer + (ends ? 2 * kTable + 4096 : 0)) + (ends ? 8 : 0));
    // Half of the micro-batches run each way, so inner stages send activations of all eight.
    const CallSums forward = sums_of(program, workload, "pp.forward");
    const std::uint64_t tensor = 8192 * 4096 * 2;
    EXPECT_EQ(forward.sent, (ends ? 4 : 8) * tensor);
    EXPECT_EQ(forward.received, (ends ? 4 : 8) * tensor);
  }
}

TEST(DualPipePlans, SayWhatTheyNeed) {
  const auto error = [](Plan plan, const char* schedule) {
    plan.more = std::string(", schedule: ") + schedule;
    const std::string text = test::error_of([&] { plan.workload(); });
    return text.substr(text.find(": ") + 2);
  };
  EXPECT_EQ(error({.pp = 4, .dp = 1, .micro_batches = 7}, "dualpipe"),
            "schedule dualpipe takes an even number of micro-batches, 2 pp or more, here 7 with pp "
            "4; use parallel.global_batch=8");
  EXPECT_EQ(error({.pp = 4, .dp = 2, .micro_batches = 4}, "dualpipev"),
            "schedule dualpipev takes 2 pp or more, here 4 with pp 4; use "
            "parallel.global_batch=16");
  EXPECT_EQ(
      error({.model = "{base: llama3-8b, layers: 30}", .pp = 5, .micro_batches = 10}, "dualpipe"),
      "parallel.pp is 5 but schedule dualpipe needs stages in pairs; use parallel.pp=2 or 6");
}

}  // namespace
}  // namespace ghostrank
