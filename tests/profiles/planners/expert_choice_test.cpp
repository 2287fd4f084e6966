// Group-limited routing and deduplicated dispatch: closed forms against a count of every choice,
// draws against their means, and the bytes of plans against closed forms.
#include "profiles/planners/shared/expert_choice.h"

#include <cmath>
#include <numeric>

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

Experts experts_of(std::uint64_t count, std::uint64_t top_k, std::uint64_t groups,
                   std::uint64_t group_top_k) {
  Experts out;
  out.count = count;
  out.top_k = top_k;
  out.groups = groups;
  out.group_top_k = group_top_k;
  return out;
}

// The share of choices that touch a run of experts, counted over every set of groups, every set of
// experts in them, and every run of `neighbours` experts.
double counted_reach(const Experts& experts, std::uint64_t neighbours) {
  const std::uint64_t each = experts.count / experts.groups;
  std::uint64_t all = 0, touched = 0;
  for (std::uint64_t groups = 0; groups < 1u << experts.groups; ++groups) {
    if (static_cast<std::uint64_t>(__builtin_popcountll(groups)) != experts.group_top_k) continue;
    std::uint64_t open = 0;
    for (std::uint64_t e = 0; e < experts.count; ++e)
      if ((groups >> (e / each) & 1) != 0) open |= 1u << e;
    for (std::uint64_t chosen = 0; chosen < 1u << experts.count; ++chosen) {
      if ((chosen & ~open) != 0 ||
          static_cast<std::uint64_t>(__builtin_popcountll(chosen)) != experts.top_k)
        continue;
      for (std::uint64_t first = 0; first < experts.count; first += neighbours, ++all)
        touched += (chosen >> first & ((1u << neighbours) - 1)) != 0;
    }
  }
  return static_cast<double>(touched) / static_cast<double>(all);
}

TEST(ExpertChoice, ReachesNeighboursAsOftenAsCountingSays) {
  for (const Experts& experts :
       {experts_of(8, 3, 4, 2), experts_of(8, 2, 1, 1), experts_of(12, 4, 4, 3),
        experts_of(12, 3, 6, 6), experts_of(12, 2, 3, 1), experts_of(12, 3, 3, 2)})
    for (std::uint64_t neighbours = 1; neighbours <= experts.count; ++neighbours) {
      if (experts.count % neighbours != 0) continue;
      EXPECT_NEAR(reach(experts, neighbours), counted_reach(experts, neighbours), 1e-12)
          << experts.count << " " << experts.groups << " " << neighbours;
    }
}

TEST(ExpertChoice, IsDrawnAsOftenAsTheClosedFormSays) {
  const Experts experts = experts_of(256, 8, 8, 4);  // DeepSeek-V3's
  constexpr std::size_t kTokens = 20'000;
  const std::vector<double> even(256, 1.0);
  const Choices choices = drawn_choices(experts, even, 64, 8, kTokens, 7);
  EXPECT_NEAR(std::accumulate(choices.experts.begin(), choices.experts.end(), 0.0), 8, 1e-9);
  const double node = reach(experts, 32), rank = reach(experts, 4);
  // Five standard deviations of the mean of so many draws.
  const auto near = [&](double share, double expected) {
    return std::abs(share - expected) < 5 * std::sqrt(expected * (1 - expected) / kTokens);
  };
  for (const double share : choices.nodes) EXPECT_TRUE(near(share, node)) << share;
  for (const double share : choices.ranks) EXPECT_TRUE(near(share, rank)) << share;
  for (const double share : choices.experts) EXPECT_TRUE(near(share, 8.0 / 256)) << share;
  // Never more than four nodes.
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Choices one = drawn_choices(experts, even, 64, 8, 1, seed);
    EXPECT_LE(std::accumulate(one.nodes.begin(), one.nodes.end(), 0.0), 4 + 1e-9) << seed;
  }
  EXPECT_EQ(drawn_choices(experts, even, 64, 8, 100, 3).nodes,
            drawn_choices(experts, even, 64, 8, 100, 3).nodes);
  EXPECT_NE(drawn_choices(experts, even, 64, 8, 100, 3).nodes,
            drawn_choices(experts, even, 64, 8, 100, 4).nodes);
}

TEST(ExpertChoice, FollowsTheLoads) {
  std::vector<double> loads(16, 1.0);
  for (std::size_t e = 0; e < 4; ++e) loads[e] = 9;  // the first group of four
  const Choices limited = drawn_choices(experts_of(16, 2, 4, 1), loads, 4, 4, 20'000, 1);
  EXPECT_NEAR(limited.nodes[0], 36.0 / 48, 0.02);
  loads.assign(16, 0.0);
  loads[5] = loads[6] = 1;
  EXPECT_NEAR(drawn_choices(experts_of(16, 2, 1, 1), loads, 16, 4, 10, 1).ranks[5], 1, 1e-9);
}

// DeepSeek-V2's groups of 20 lie across nodes of 32 experts, and of 16.
TEST(ExpertChoice, IsDrawnAsOftenWhereGroupsLieAcrossNodes) {
  const Experts experts = experts_of(160, 6, 8, 3);
  for (const std::size_t nodes : {5, 10}) {
    const Choices choices =
        drawn_choices(experts, std::vector<double>(160, 1.0), 80, nodes, 20'000, 7);
    EXPECT_NEAR(std::accumulate(choices.nodes.begin(), choices.nodes.end(), 0.0) /
                    static_cast<double>(nodes),
                reach(experts, 160 / nodes), 0.005);
  }
}

// ---- Plans ----

// Sixteen ranks of eight-GPU nodes share 64 experts.
Plan two_nodes(const std::string& experts, const std::string& more) {
  Plan plan{.model = "{base: mixtral-8x7b, layers: 2, experts: {count: 64, top_k: 6, ffn: 1024, " +
                     experts + "}}",
            .dp = 16,
            .micro_batches = 3};
  plan.more = ", ep: 16, expert_dispatch: deduplicated" + more;
  plan.per_node = 8;
  return plan;
}

// Per layer and micro-batch, a row crosses to a node, forward and backward, out and back, if the
// node has any of the token's experts, and then goes to the ranks inside. The weights of six
// experts cross out and back once.
TEST(DeduplicatedDispatch, SendsARowOnceToEveryNodeAndRank) {
  constexpr double kTokens = 4096;
  for (const char* groups :
       {"groups: 1", "groups: 8, group_top_k: 2", "groups: 2, group_top_k: 1"}) {
    const Plan plan = two_nodes(groups, "");
    const JobSpec spec = plan.spec();
    const Experts& experts = spec.model->transformer->experts;
    const Workload workload = plan_workload(spec);
    ASSERT_EQ(workload.roles.size(), 1u);
    const Program& program = workload.roles[0].iterations[0];
    EXPECT_TRUE(test::streams_end(program));
    const auto rows = [&](std::uint64_t experts_there) {
      return static_cast<std::uint64_t>(std::ceil(kTokens * reach(experts, experts_there) - 1e-6));
    };
    const std::uint64_t row = 4 * 4096 * 2 + 2 * 6 * 4;  // bytes, in all directions
    EXPECT_EQ(sums_of(program, workload, "ep.rail").bytes[Func::all_to_all],
              3 * 2 * rows(32) * row);
    EXPECT_EQ(sums_of(program, workload, "ep.node").bytes[Func::all_to_all],
              3 * 2 * 2 * rows(4) * row);
    EXPECT_EQ(sums_of(program, workload, "ep").bytes[Func::all_to_all], 3 * 2 * (4 + 1) * 4u);
    EXPECT_EQ(sums_of(program, workload, "tp_ep").calls[Func::all_gather], 0u);
  }
  // Two groups, and a token uses one of them: it reaches one of two nodes.
  const Plan half = two_nodes("groups: 2, group_top_k: 1", "");
  const JobSpec spec = half.spec();
  EXPECT_EQ(rows_to_each(megatron_plan(spec), 2), 2048u);
}

TEST(DeduplicatedDispatch, HasRailsBetweenNodes) {
  const Workload workload = two_nodes("groups: 8, group_top_k: 2", "").workload();
  std::vector<std::vector<WorldRank>> rails, nodes;
  for (const Group& group : workload.groups) {
    if (workload.group_names[group.kind] == "ep.rail") rails.push_back(group.members);
    if (workload.group_names[group.kind] == "ep.node") nodes.push_back(group.members);
  }
  ASSERT_EQ(rails.size(), 8u);
  EXPECT_EQ(rails[3], world_ranks({3, 11}));
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[1], world_ranks({8, 9, 10, 11, 12, 13, 14, 15}));
}

// Between nodes a rank sends the rows that the target node's experts need. Inside a node a rank
// hands on the rows that came from all nodes, each to at least one rank and to at most one per
// expert of its token.
TEST(DeduplicatedDispatch, FollowsUnequalLoads) {
  const Plan plan = two_nodes("groups: 8, group_top_k: 2", ", expert_imbalance: 0.8");
  const Workload workload = plan.workload();
  ASSERT_EQ(workload.roles.size(), 16u);
  constexpr std::uint64_t kWidth = 4096, kTokens = 4096;
  const auto first_list = [&](std::size_t role, const std::string& group) {
    for (const auto& stream : workload.roles[role].iterations[0].streams)
      for (const Op& op : stream)
        if (op.kind == Op::Kind::collective && op.func == Func::all_to_all_v &&
            workload.group_names[op.group] == group)
          return *workload.counts[op.counts];
    return std::vector<std::uint64_t>{};
  };
  for (const std::size_t role : {0u, 5u, 8u, 15u}) {
    EXPECT_TRUE(test::streams_end(workload.roles[role].iterations[0]));
    const auto rail = first_list(role, "ep.rail"), node = first_list(role, "ep.node");
    ASSERT_EQ(rail.size(), 4u);
    ASSERT_EQ(node.size(), 64u);
    EXPECT_EQ(rail, first_list(0, "ep.rail"));
    EXPECT_LE(rail[0] + rail[1], 2 * kTokens * kWidth);
    EXPECT_GE(rail[0] + rail[1], kTokens * kWidth);  // every token reaches at least one node
    std::uint64_t handed_on = 0;
    for (std::size_t to = 0; to < 8; ++to) handed_on += node[to];
    EXPECT_GE(handed_on, 2 * rail[role / 8]);      // some rank needs each row that crossed
    EXPECT_LE(handed_on, 6 * 2 * rail[role / 8]);  // and at most one per expert of the token
  }
  EXPECT_NE(first_list(0, "ep.node"), first_list(8, "ep.node"));
}

TEST(LimitedRouting, MovesLoadsToWhatWholeGroupsAllow) {
  const auto arriving = [](const std::string& groups) {
    Plan plan{
        .model = "{base: mixtral-8x7b, layers: 1, experts: {count: 8, top_k: 2, " + groups + "}}",
        .dp = 4};
    plan.more = ", ep: 4, expert_load: [9, 1, 1, 1, 3, 3, 3, 3]";
    const Workload workload = plan.workload();
    std::vector<std::uint64_t> rows = *workload.counts[0];
    rows.resize(4);
    return rows;
  };
  const auto any = arriving("groups: 1"), limited = arriving("groups: 2, group_top_k: 1");
  const auto ratio = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  EXPECT_NEAR(ratio(any[0], any[1]), 5, 0.02);  // loads of 10 to 2
  EXPECT_NE(any, limited);
  EXPECT_EQ(std::accumulate(any.begin(), any.end(), std::uint64_t{0}),
            std::accumulate(limited.begin(), limited.end(), std::uint64_t{0}));
  // Both experts of a token are in one group, drawn by its load: 12 to 12. In the first group the
  // fullest expert is one of the two with probability p, each other one with (2 - p) / 3.
  EXPECT_NEAR(ratio(limited[0] + limited[1], limited[2] + limited[3]), 1, 0.3);
  const double p = 9. / 12 + 3. / 12 * 9 / 11, first = p + (2 - p) / 3;
  EXPECT_NEAR(ratio(limited[0], limited[1]), first / (2 - first), 0.4);
}

TEST(DeduplicatedDispatch, IsRefusedWhereItDoesNotFit) {
  const auto error = [](Plan plan, const std::string& more) {
    plan.more = ", expert_dispatch: deduplicated" + more;
    const std::string text = test::error_of([&] { plan.workload(); });
    return text.substr(text.find("parallel."));
  };
  EXPECT_EQ(error({.model = "mixtral-8x7b", .tp = 2, .dp = 4, .sequence = true}, ", ep: 4"),
            "parallel.expert_dispatch: deduplicated has whole experts on a rank; use "
            "parallel.expert_tp=1");
  Plan three{.model = "{base: mixtral-8x7b, experts: {count: 12}}", .dp = 24};
  three.per_node = 8;
  EXPECT_NE(error(three, ", ep: 12").find("use an ep that nodes of 8 GPUs divide"),
            std::string::npos);
  const auto model = [](const std::string& experts) {
    return test::error_of(
        [&] { Plan{.model = "{base: mixtral-8x7b, experts: {" + experts + "}}"}.spec(); });
  };
  EXPECT_NE(model("groups: 3").find("choose a divisor of 8"), std::string::npos);
  EXPECT_NE(model("groups: 8, group_top_k: 1").find("use at least 2 and at most 8"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
