// Megatron plans against closed forms that do not use the planner, and against volumes measured on
// real runs.
#include "profiles/planners/megatron/megatron.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "profiles/planners/megatron/plan.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/planners/megatron_support.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

using test::CallSums;
using test::sums_of;

using Plan = test::MegatronJob;

// ---- Tensor parallelism ----

// Bytes of hidden states per call: all tokens of a micro-batch, bf16.
std::uint64_t hidden_bytes(const Plan& plan, std::uint64_t sequence, std::uint64_t hidden) {
  return sequence / plan.cp * static_cast<std::uint64_t>(plan.micro_batch) * hidden * 2;
}

class TensorParallel : public testing::TestWithParam<std::tuple<int, int, int, int, const char*>> {
};

// Calls per layer and micro-batch on hidden states. Without sequence parallelism: 2 forward and 2
// backward. With it each half of a layer gathers once and scatters once forward, and gathers twice
// and scatters once backward. Full recomputation adds a forward.
TEST_P(TensorParallel, MovesTheBytesOfTheClosedForm) {
  const auto [tp, pp, cp, micro_batches, recompute] = GetParam();
  constexpr std::uint64_t kLayers = 32, kHidden = 4096, kSequence = 8192;
  for (const bool sequence : {false, true}) {
    Plan plan{.tp = tp,
              .pp = pp,
              .cp = cp,
              .dp = 2,
              .micro_batches = micro_batches,
              .sequence = sequence,
              .recompute = recompute};
    const Workload workload = plan.workload();
    const std::uint64_t m = hidden_bytes(plan, kSequence, kHidden);
    const auto batches = static_cast<std::uint64_t>(micro_batches);
    const std::uint64_t again = std::string(recompute) == "full" ? 1 : 0;
    std::uint64_t gathered = 0, scattered = 0, reduced = 0;
    for (const Role& role : workload.roles) {
      CallSums sums = sums_of(role.iterations.back(), workload, "tp");
      gathered += sums.bytes[Func::all_gather] * static_cast<std::uint64_t>(tp);
      scattered += sums.bytes[Func::reduce_scatter] * static_cast<std::uint64_t>(tp);
      reduced += sums.bytes[Func::all_reduce];
    }
    const std::uint64_t loss = 3 * kSequence / cp * 4 * batches;
    if (sequence) {
      // The head gathers forward and backward and scatters backward; the embedding does the
      // reverse.
      EXPECT_EQ(gathered, ((6 + 2 * again) * kLayers + 3) * m * batches);
      EXPECT_EQ(scattered, ((4 + 2 * again) * kLayers + 2) * m * batches);
      EXPECT_EQ(reduced, loss + (2 * kLayers + 1) * kHidden * 4);  // norms once per step
    } else {
      EXPECT_EQ(gathered + scattered, 0u);
      EXPECT_EQ(reduced, ((4 + 2 * again) * kLayers + 2) * m * batches + loss);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sweep, TensorParallel,
                         testing::Combine(testing::Values(2, 4, 8), testing::Values(1, 2, 4),
                                          testing::Values(1, 2), testing::Values(1, 5),
                                          testing::Values("none", "selective", "full")));

// ---- Measured volumes ----

// Reported by CCL-Bench (arXiv 2605.06544) for Llama-3.1-8B with tp 2, dp 4 and with tp 4, dp 2. It
// counts an all-gather as the shard and a reduce-scatter as its input. Its norms have biases.
TEST(MegatronVolumes, AreThoseMeasuredOnLlama3) {
  struct Measured {
    int tp, dp;
    double all_gather, reduce_scatter, all_reduce;
  };
  for (const Measured& row : {Measured{2, 4, 2.00777e9, 16.0621e9, 13.0192e9},
                              Measured{4, 2, 2.00856e9, 8.03422e9, 26.0384e9}}) {
    Plan plan{.model = "{base: llama3-8b, sequence: 1024, norm: layernorm, architecture: llama}",
              .tp = row.tp,
              .dp = row.dp,
              .micro_batch = 32 / row.dp,
              .sharded = true,
              .recompute = "full"};
    const Workload workload = plan.workload();
    CallSums data = sums_of(workload.roles[0].iterations[0], workload, "dp");
    CallSums tensor = sums_of(workload.roles[0].iterations[0], workload, "tp");
    const auto shards = static_cast<std::uint64_t>(row.dp);
    EXPECT_NEAR(static_cast<double>(data.bytes[Func::all_gather]) / row.all_gather, 1, 1e-5);
    EXPECT_NEAR(static_cast<double>(data.bytes[Func::reduce_scatter] * shards) / row.reduce_scatter,
                1, 1e-5);
    EXPECT_NEAR(static_cast<double>(tensor.bytes[Func::all_reduce]) / row.all_reduce, 1, 1e-5);
  }
}

// AICB's description of GPT-13B with tp 8: one rank's fp32 gradients and bf16 parameters, and the
// hidden states of a micro-batch.
TEST(MegatronVolumes, AreThoseOfAicbForGpt13B) {
  Plan plan{.model = "{base: gpt3-13b, vocabulary: 32000}", .tp = 8, .dp = 1};
  const JobSpec spec = plan.spec();
  const MegatronPlan facts = megatron_plan(spec);
  std::uint64_t numel = 0;
  for (const Parameter& p : megatron_parameters(facts, facts.parts[0])) numel += p.numel;
  EXPECT_EQ(numel * 4, 6'422'958'080u);
  EXPECT_EQ(numel * 2, 3'211'479'040u);
  EXPECT_EQ(facts.hidden_states() * 2, 20'971'520u);
}

TEST(MegatronParameters, HaveBiasesOfQueriesKeysAndValuesAlone) {
  for (const int tp : {1, 2, 4}) {
    Plan plan{.model = "qwen2.5-7b", .tp = tp, .dp = 1};
    const JobSpec spec = plan.spec();
    EXPECT_EQ(megatron_stored(megatron_plan(spec), 0), spec.model->parameters()) << tp;
  }
}

// ---- Context parallelism ----

TEST(ContextParallel, SharesKeysAndValuesAsItsKindDoes) {
  constexpr std::uint64_t kLayers = 32, kKeys = 1024, kQueries = 4096, kSequence = 8192;
  for (const int cp : {2, 4}) {
    const auto shards = static_cast<std::uint64_t>(cp);
    const std::uint64_t tokens = kSequence / shards / 1;
    const std::uint64_t kv = 2 * tokens * kKeys * 2, q = tokens * kQueries * 2;  // bytes
    Plan plan{.cp = cp, .dp = 1, .micro_batches = 3};
    const auto sums = [&](const char* kind) {
      plan.more = std::string(", cp_comm: ") + kind;
      const Workload workload = plan.workload();
      return sums_of(workload.roles[0].iterations[0], workload, "cp");
    };
    // Forward cp-1 blocks; backward again cp-1, and as many with gradients.
    EXPECT_EQ(sums("p2p").sent, 3 * kLayers * kv * 3 * (shards - 1));
    CallSums gathered = sums("all_gather");
    EXPECT_EQ(gathered.bytes[Func::all_gather], 3 * kLayers * 2 * kv);
    EXPECT_EQ(gathered.bytes[Func::reduce_scatter], 3 * kLayers * kv);
    EXPECT_EQ(gathered.calls[Func::all_gather], 3 * kLayers * 2 * 2);  // keys and values apart
    EXPECT_EQ(gathered.calls[Func::reduce_scatter], 3 * kLayers * 2);
    // Queries, keys, values and output, and the gradients of all four.
    EXPECT_EQ(sums("a2a").bytes[Func::all_to_all] * shards, 3 * kLayers * 2 * (2 * q + kv));
  }
}

// A message that carries a block on carries its gradients, too: as many as there are ranks, each on
// its way while a block is computed.
TEST(ContextParallel, SendsGradientsWithTheirBlocks) {
  constexpr std::uint64_t kKeys = 1024, kSequence = 8192;
  for (const int cp : {2, 4}) {
    Plan plan{.model = "{base: llama3-8b, layers: 1}", .cp = cp};
    const Workload workload = plan.workload();
    const std::uint64_t kv = 2 * kSequence / static_cast<std::uint64_t>(cp) * kKeys;
    std::vector<std::uint64_t> expected(cp - 1, kv);  // forward
    expected.push_back(kv);
    expected.insert(expected.end(), cp - 2, 2 * kv);
    expected.push_back(kv);
    std::vector<std::uint64_t> sent;
    const Program& program = workload.roles[0].iterations[0];
    for (const OpList& stream : program.streams)
      for (const Op& op : stream)
        if (op.kind == Op::Kind::send) sent.push_back(op.count);
    EXPECT_EQ(sent, expected);
  }
}

// Ulysses among neighbours, which then hold the tokens of all of them for a share of the heads. The
// ring between their groups has blocks of the same size, but fewer of them.
TEST(ContextParallel, HasTwoLevels) {
  constexpr std::uint64_t kLayers = 32, kKeys = 1024, kQueries = 4096, kSequence = 8192;
  for (const int inner : {2, 4}) {
    Plan plan{.cp = 8, .micro_batches = 3};
    plan.more = ", cp_comm: a2a+p2p, cp_a2a: " + std::to_string(inner);
    const Workload workload = plan.workload();
    const Program& program = workload.roles[0].iterations[0];
    EXPECT_TRUE(test::streams_end(program));
    EXPECT_EQ(test::unmatched_transfers(workload), "");
    const std::uint64_t kv = 2 * kSequence / 8 * kKeys * 2, q = kSequence / 8 * kQueries * 2;
    const auto shards = static_cast<std::uint64_t>(inner);
    EXPECT_EQ(sums_of(program, workload, "cp.a2a").bytes[Func::all_to_all] * shards,
              3 * kLayers * 2 * (2 * q + kv));
    EXPECT_EQ(sums_of(program, workload, "cp.p2p").sent, 3 * kLayers * kv * 3 * (8 / shards - 1));
    EXPECT_EQ(sums_of(program, workload, "cp").sent, 0u);
    std::vector<int> neighbours, ring;
    for (const Group& group : workload.groups) {
      if (group.members.front() != WorldRank(0)) continue;
      if (workload.group_names[group.kind] == "cp.a2a") neighbours = numbers_of(group.members);
      if (workload.group_names[group.kind] == "cp.p2p") ring = numbers_of(group.members);
    }
    EXPECT_EQ(neighbours.back(), inner - 1);
    EXPECT_EQ(ring.at(1), inner);
  }
}

// ---- Experts ----

TEST(ExpertParallel, MovesRowsToExpertsAndBack) {
  constexpr std::uint64_t kLayers = 32, kHidden = 4096, kSequence = 4096, kTopK = 2;
  for (const int ep : {2, 4, 8})
    for (const int tp : {1, 2}) {
      Plan plan{.model = "mixtral-8x7b", .tp = tp, .dp = 8, .micro_batches = 3, .sequence = true};
      plan.more = ", ep: " + std::to_string(ep) + ", expert_tp: 1";
      const Workload workload = plan.workload();
      const Program& program = workload.roles[0].iterations[0];
      const std::uint64_t rows = kSequence * kTopK / tp;
      CallSums sums = sums_of(program, workload, "ep");
      // Rows out and back, forward and backward, in bf16; probabilities out and back in fp32.
      EXPECT_EQ(sums.bytes[Func::all_to_all] * static_cast<std::uint64_t>(ep),
                3 * kLayers * rows * (4 * kHidden * 2 + 2 * 4));
      EXPECT_EQ(sums.calls[Func::all_to_all], 3 * kLayers * 6);
      CallSums counts = sums_of(program, workload, "tp_ep");
      EXPECT_EQ(counts.bytes[Func::all_gather], 3 * kLayers * 8 * 8);
    }
}

TEST(ExpertParallel, ReducesExpertsOverThoseThatHoldTheSame) {
  constexpr std::uint64_t kExpert = 3 * 14336u * 4096u;
  for (const int ep : {1, 2, 8}) {
    Plan plan{.model = "mixtral-8x7b", .dp = 16, .more = ", ep: " + std::to_string(ep)};
    const Workload workload = plan.workload();
    const Program& program = workload.roles[0].iterations[0];
    const auto here = static_cast<std::uint64_t>(8 / ep);
    EXPECT_EQ(sums_of(program, workload, "edp").bytes[Func::all_reduce], 32 * here * kExpert * 4);
    EXPECT_EQ(sums_of(program, workload, "dp").bytes[Func::all_reduce] - 8,
              (46702792704 - 32 * 8 * kExpert) * 4);
    for (const Group& group : workload.groups)
      if (workload.group_names[group.kind] == "edp") {
        EXPECT_EQ(group.members.size(), static_cast<std::size_t>(16 / ep));
      }
  }
}

// Experts have an optimizer of their own, whose norm is that of all ranks with parts of a replica;
// the norm of a distributed optimizer is that of all ranks. With fp16 they first agree whether a
// gradient overflowed.
TEST(ExpertParallel, AddsUpTheNormOfExpertsOnItsOwn) {
  for (const bool sharded : {false, true})
    for (const DataType type : {DataType::bfloat16, DataType::float16}) {
      Plan plan{.model = "mixtral-8x7b", .tp = 2, .pp = 2, .dp = 4, .sequence = true};
      plan.sharded = sharded;
      plan.more = ", ep: 4, expert_tp: 1";
      JobSpec spec = plan.spec();
      spec.precision.parameters = type;
      const std::uint64_t bytes = type == DataType::float16 ? 8 : 4;
      const Workload workload = plan_workload(spec);
      for (const Role& role : workload.roles) {
        CallSums dense = sums_of(role.iterations[0], workload, sharded ? "world" : "mp"),
                 experts = sums_of(role.iterations[0], workload, "expert_mp");
        EXPECT_EQ(dense.bytes[Func::all_reduce], bytes);
        EXPECT_EQ(experts.bytes[Func::all_reduce], sharded ? 0 : bytes);
      }
      for (const Group& group : workload.groups)
        if (workload.group_names[group.kind] == "expert_mp") {
          EXPECT_EQ(group.members.size(), 4u * 2);
        }
    }
}

TEST(ExpertParallel, SharesExpertsBetweenTensorParallelRanks) {
  Plan plan{.model = "mixtral-8x7b", .tp = 4, .dp = 4, .sequence = true, .more = ", ep: 2"};
  const Workload workload = plan.workload();
  CallSums sums = sums_of(workload.roles[0].iterations[0], workload, "etp");
  constexpr std::uint64_t kRows = 4096 * 2 / 4, kBytes = kRows * 4096 * 2 + kRows * 4;
  EXPECT_EQ(sums.bytes[Func::all_gather], 32 * (kBytes + kRows * 4096 * 2));
  EXPECT_EQ(sums.bytes[Func::reduce_scatter], 32 * (kBytes + kRows * 4096 * 2));
}

// ---- Pipeline ----

TEST(PipelineParallel, SendsHiddenStatesAndTheirGradientsOncePerMicroBatchAndBoundary) {
  for (const int pp : {2, 4})
    for (const bool sequence : {false, true}) {
      Plan plan{.tp = 2, .pp = pp, .dp = 1, .micro_batches = 6, .sequence = sequence};
      const Workload workload = plan.workload();
      const std::uint64_t tensor = 8192u * 4096 * 2 / (sequence ? 2 : 1);
      for (int stage = 0; stage < pp; ++stage) {
        const Program& program = workload.roles[stage].iterations[0];
        const CallSums forward = sums_of(program, workload, "pp.forward"),
                       backward = sums_of(program, workload, "pp.backward");
        EXPECT_EQ(forward.sent, stage + 1 < pp ? 6 * tensor : 0);
        EXPECT_EQ(forward.received, stage > 0 ? 6 * tensor : 0);
        EXPECT_EQ(backward.sent, stage > 0 ? 6 * tensor : 0);
        EXPECT_EQ(backward.received, stage + 1 < pp ? 6 * tensor : 0);
      }
    }
}

// ---- Schedules and groups ----

TEST(PipelineParallel, MovesAndReducesTheSameWithEverySchedule) {
  const auto totals = [](const char* more) {
    Plan plan{.tp = 2, .pp = 4, .dp = 2, .micro_batches = 8, .sequence = true, .more = more};
    const Workload workload = plan.workload();
    std::map<std::string, std::uint64_t> bytes;
    for (const Role& role : workload.roles)
      for (const char* group : {"tp", "dp"}) {
        for (const auto& [func, sum] : sums_of(role.iterations[0], workload, group).bytes)
          bytes[std::string(group) + " " + std::string(name_of(func))] += sum;
      }
    return bytes;
  };
  const auto expected = totals("");
  for (const char* more :
       {", schedule: interleaved, interleave: 2", ", schedule: interleaved, interleave: 8",
        ", schedule: zb-h1", ", schedule: zbv"})
    EXPECT_EQ(totals(more), expected) << more;
}

// The passes that a stage computes if no send ever ends: "F0".
std::set<std::string> passes_without_sends(const Program& program) {
  std::set<std::string> passes;
  for (const std::string& label : test::computed_without_sends(program))
    if (label != "optimizer") passes.insert(label.substr(0, label.find(' ')));
  return passes;
}

// The stage waits for its sends: in send_forward, and after a backward of the last stage in
// send_backward_recv_forward.
TEST(MegatronPipeline, WaitsForTheSendsOfABatch) {
  using Passes = std::set<std::string>;
  const Workload workload = Plan{.pp = 4, .dp = 1, .micro_batches = 8}.workload();
  for (int stage = 0; stage < 4; ++stage)
    EXPECT_EQ(passes_without_sends(workload.roles[stage].iterations[0]),
              stage < 3 ? Passes{"F0"} : (Passes{"F0", "B0"}))
        << stage;
  // All micro-batches fit in the warm-up of the first two stages.
  const Workload few = Plan{.pp = 4, .dp = 1, .micro_batches = 2}.workload();
  EXPECT_EQ(passes_without_sends(few.roles[0].iterations[0]), Passes{"F0"});
  EXPECT_TRUE(test::streams_end(few.roles[0].iterations[0]));
}

// Interleaved stages wait in the warm-up, DualPipe's stages for every batch. Those of torch's
// runtime (zb-h1) wait for no send.
TEST(MegatronPipeline, WaitsForSendsAsTheScheduleDoes) {
  using Passes = std::set<std::string>;
  Plan plan{.pp = 2, .dp = 1, .micro_batches = 4};
  plan.more = ", schedule: interleaved, interleave: 2";
  for (const Role& role : plan.workload().roles)
    EXPECT_EQ(passes_without_sends(role.iterations[0]), Passes{"F0"});
  plan.more = ", schedule: dualpipe";
  EXPECT_EQ(passes_without_sends(plan.workload().roles[0].iterations[0]), Passes{"F0"});
  plan.more = ", schedule: zb-h1";
  EXPECT_EQ(passes_without_sends(plan.workload().roles[0].iterations[0]).size(), 4u * 3);
}

TEST(MegatronGroups, FollowTheOrderOfRanks) {
  Plan plan{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .micro_batches = 2};
  const auto members = [](const Workload& workload, const std::string& name) {
    std::set<std::vector<int>> out;
    for (const Group& group : workload.groups)
      if (workload.group_names[group.kind] == name) out.insert(numbers_of(group.members));
    return out;
  };
  using Sets = std::set<std::vector<int>>;
  const Workload usual = plan.workload();
  EXPECT_EQ(members(usual, "tp").count({4, 5}), 1u);
  EXPECT_EQ(members(usual, "cp").count({0, 2}), 1u);
  EXPECT_EQ(members(usual, "dp"),
            (Sets{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
  EXPECT_EQ(members(usual, "pp.forward").count({3, 11}), 1u);
  EXPECT_EQ(usual.role_of[WorldRank(7)], 0);
  EXPECT_EQ(usual.role_of[WorldRank(8)], 1);

  plan.more = ", order: pp-tp-cp-dp";
  const Workload pipeline_first = plan.workload();
  EXPECT_EQ(members(pipeline_first, "pp.forward").count({6, 7}), 1u);
  EXPECT_EQ(members(pipeline_first, "tp").count({0, 2}), 1u);
  EXPECT_EQ(pipeline_first.role_of[WorldRank(5)], 1);
}

TEST(MegatronPlans, CountTheSamplesOfManyRanks) {
  JobSpec spec = test::MegatronJob{.model = "mixtral-8x7b"}.spec();
  spec.cluster.nodes = 1 << 20;
  spec.parallel.micro_batch = 4096;
  spec.parallel.global_batch = 0;
  EXPECT_EQ(megatron_plan(spec).pipeline.micro_batches, 1);
  auto model = std::make_shared<Model>(*spec.model);
  model->transformer->experts.count = 1 << 16;
  spec.model = model;
  spec.parallel.ep = spec.parallel.expert_tp = 1 << 16;
  EXPECT_NE(test::error_of([&] { megatron_plan(spec); }).find("no multiple of ep x expert_tp"),
            std::string::npos);
}

TEST(MegatronPlans, AreBuiltPerStageNotPerRank) {
  Plan plan{.model = "gpt3-175b", .tp = 8, .pp = 16, .dp = 8, .micro_batches = 4};
  const Workload workload = plan.workload();
  EXPECT_EQ(workload.ranks, 1024);
  EXPECT_EQ(workload.roles.size(), 16u);
  for (const Role& role : workload.roles) EXPECT_LT(role.iterations[0].events, 100u);
}

TEST(MegatronPlans, Run) {
  for (const char* more : {"", ", schedule: interleaved, interleave: 2", ", schedule: zb-h1",
                           ", schedule: zbv", ", schedule: dualpipe", ", schedule: dualpipev"})
    for (const char* recompute : {"none", "selective", "full"})
      for (const bool sharded : {false, true}) {
        Plan plan{.tp = 2,
                  .pp = 4,
                  .cp = 2,
                  .dp = 2,
                  .micro_batches = 8,
                  .sequence = true,
                  .sharded = sharded,
                  .recompute = recompute,
                  .more = more};
        const Workload workload = plan.workload();
        for (const Role& role : workload.roles)
          EXPECT_TRUE(test::streams_end(role.iterations[0])) << role.name;
        EXPECT_EQ(test::unmatched_transfers(workload), "");
      }
  Plan experts{.model = "mixtral-8x7b",
               .tp = 2,
               .pp = 4,
               .dp = 4,
               .micro_batches = 4,
               .sequence = true,
               .sharded = true,
               .recompute = "full",
               .more = ", ep: 4, expert_tp: 1, schedule: zb-h1"};
  const Workload workload = experts.workload();
  for (const Role& role : workload.roles)
    EXPECT_TRUE(test::streams_end(role.iterations[0])) << role.name;
  EXPECT_EQ(test::unmatched_transfers(workload), "");
}

// ---- What does not fit ----

TEST(MegatronErrors, SayWhatDoesNotFitAndWhatWould) {
  const auto error = [](const std::string& parallel, const std::string& cluster = "nodes: 8",
                        const std::string& model = "llama3-8b") {
    const std::string message = test::error_of([&] {
      plan_workload(test::load_text("model: " + model +
                                    "\ndevice: {base: h100-sxm, memory_bytes: 0}\ncluster: {" +
                                    cluster +
                                    "}\nprecision: {parameters: bf16}\nparallel: {framework: "
                                    "megatron, " +
                                    parallel + "}\n")
                        .spec);
    });
    return message.substr(message.find(": ") + 2);
  };
  EXPECT_EQ(error("tp: 6"),
            "parallel.tp is 6 but does not divide 32 heads; use parallel.tp=4 or 8");
  EXPECT_EQ(error("tp: 16"), "parallel.tp is 16 but does not divide 8 kv_heads; use parallel.tp=8");
  EXPECT_EQ(error("tp: 2, pp: 6", "nodes: 6"),
            "parallel.pp is 6 but does not divide 32 layers; use parallel.pp=4 or 8, or unequal "
            "parts: parallel.decoder_last_pipeline_num_layers=2, "
            "decoder_first_pipeline_num_layers, account_for_embedding_in_pipeline_split, "
            "account_for_loss_in_pipeline_split or pipeline_model_parallel_layout");
  EXPECT_EQ(error("tp: 8, pp: 2, dp: 8"),
            "parallel.dp is 8 but 64 GPUs with tp 8 x cp 1 x pp 2 leave 4; use parallel.dp=4");
  EXPECT_EQ(error("tp: 8, pp: 16", "nodes: 10"),
            "80 GPUs are no multiple of tp 8 x cp 1 x pp 16; use cluster.nodes=16 or smaller "
            "dimensions");
  EXPECT_EQ(error("tp: 8, pp: 2, global_batch: 30"),
            "parallel.global_batch is 30 but micro_batch 1 x dp 4 does not divide it; use "
            "parallel.global_batch=28 or 32");
  EXPECT_EQ(error("tp: 8, pp: 4, global_batch: 12, schedule: interleaved, interleave: 2"),
            "schedule interleaved takes micro-batches in blocks of pp, here 6 with pp 4; use "
            "parallel.global_batch=16");
  EXPECT_EQ(error("tp: 8, pp: 4, schedule: interleaved, interleave: 2"),
            "schedule interleaved takes micro-batches in blocks of pp, here 1 with pp 4; use "
            "parallel.global_batch=8");
  EXPECT_EQ(error("tp: 8, pp: 4, global_batch: 8, schedule: interleaved, interleave: 3"),
            "parallel.interleave is 3 but a stage has 8 layers to cut in two chunks or more; use "
            "parallel.interleave=2 or 4");
  EXPECT_EQ(error("ep: 3", "nodes: 1", "mixtral-8x7b"),
            "parallel.ep is 3 but does not divide 8 experts; use parallel.ep=2 or 4");
  EXPECT_EQ(error("expert_tp: 3", "nodes: 1", "mixtral-8x7b"),
            "parallel.expert_tp is 3 but does not divide the 8 ranks of a stage; use "
            "parallel.expert_tp=2 or 4");
  EXPECT_EQ(error("tp: 8, expert_tp: 1, sequence_parallel: true", "nodes: 1",
                  "{base: mixtral-8x7b, experts: {count: 8, top_k: 2, ffn: 1412, shared: 1}}"),
            "parallel.tp is 8 but does not divide the shared experts' ffn of 1412; use "
            "parallel.tp=4");
  EXPECT_EQ(error("ep: 2"),
            "the model has no experts to spread; leave it out, or use a model with experts");
  EXPECT_EQ(error("tp: 2", "nodes: 1", "mixtral-8x7b"),
            "experts with tp need sequence parallelism; use parallel.sequence_parallel=true");
  EXPECT_EQ(
      error("interleave: 2"),
      "parallel.interleave means nothing where parallel.schedule is 1f1b; leave it out, or use "
      "parallel.schedule: interleaved");
  EXPECT_EQ(error("cp: 3, tp: 1", "nodes: 3"),
            "parallel.cp is 3 but 2 cp does not divide the sequence of 8192; use parallel.cp=2 or "
            "4");
  EXPECT_EQ(error("cp: 8, cp_comm: a2a+p2p, cp_a2a: 3"),
            "parallel.cp_a2a is 3 but must divide cp 8 in groups of two or more; use "
            "parallel.cp_a2a=2 or 4");
  EXPECT_EQ(error("cp: 8, cp_a2a: 2"),
            "parallel.cp_a2a means nothing where parallel.cp_comm is auto; leave it out, or use "
            "parallel.cp_comm: a2a+p2p");
  EXPECT_EQ(error("tp: 4, cp: 8, cp_comm: a2a+p2p, cp_a2a: 4"),
            "parallel.cp_a2a is 4 but does not divide the 2 kv_heads of a tp rank; use "
            "parallel.cp_a2a=2");
  EXPECT_EQ(error("tp: 8, cp: 4, cp_comm: a2a+p2p, cp_a2a: 2"),
            "parallel.cp_a2a is 2 but does not divide the 1 kv_heads of a tp rank; use "
            "parallel.cp_comm=p2p");
  EXPECT_EQ(error("tp: 2, pp: 32, schedule: interleaved, interleave: 2"),
            "parallel.interleave is 2 but a stage has 1 layers to cut in two chunks or more; use "
            "parallel.schedule=1f1b, or a smaller parallel.pp");
  EXPECT_EQ(error("schedule: zbv"),
            "schedule zbv needs pipeline stages; use parallel.pp=2 or more, or "
            "parallel.schedule=1f1b");
  EXPECT_EQ(error("pp: 3, schedule: dualpipe", "nodes: 3", "{base: llama3-8b, layers: 33}"),
            "parallel.pp is 3 but schedule dualpipe needs stages in pairs; use another "
            "parallel.schedule, or an even parallel.pp with "
            "parallel.pipeline_model_parallel_layout");
  EXPECT_EQ(error("expert_tp: 16, ep: 3", "nodes: 1",
                  "{base: mixtral-8x7b, experts: {count: 6, top_k: 2, ffn: 14336}}"),
            "parallel.expert_tp is 16 but does not divide the 8 ranks of a stage; use a "
            "parallel.ep that divides them");
  EXPECT_EQ(error("distributed_optimizer: true, overlap_grad_reduce: false, "
                  "overlap_param_gather: true"),
            "parallel.overlap_param_gather needs parallel.overlap_grad_reduce: true; use that, or "
            "parallel.overlap_param_gather=false");
  EXPECT_EQ(error("order: tp-pp-xp"),
            "parallel.order is 'tp-pp-xp'; it has an unknown dimension; write tp, cp, ep, dp and "
            "pp, as in tp-cp-ep-dp-pp");
  EXPECT_EQ(error("tp: 2, order: dp-pp"),
            "parallel.order is 'dp-pp'; tp has 2 ranks and is missing; add it, as in "
            "tp-cp-ep-dp-pp");
  EXPECT_EQ(error("dp: 8", "nodes: 1", "bert-base"),
            "framework megatron trains decoders, and bert-base is none; use a model of kind "
            "transformer, architecture gpt2 or llama");
}

TEST(MegatronErrors, RefuseWhatTheDeviceCannotHold) {
  const auto error = [](const std::string& parallel) {
    const std::string message = test::error_of([&] {
      plan_workload(test::load_text("model: gpt3-175b\ndevice: h100-sxm\ncluster: {nodes: 128}\n"
                                    "precision: {parameters: bf16}\nparallel: {framework: "
                                    "megatron, sequence_parallel: true, global_batch: 512, " +
                                    parallel + "}\n")
                        .spec);
    });
    return message.substr(std::min(message.size(), message.find("job.yaml")));
  };
  EXPECT_EQ(error("tp: 8, pp: 16"), "");
  EXPECT_EQ(error("tp: 8, pp: 4"),
            "job.yaml:5:88: a rank needs about 111 GB and the device h100-sxm has 86 GB; use "
            "parallel.distributed_optimizer=true (device.memory_bytes=0: no check)");
  EXPECT_NE(error("tp: 8").find("use more tp or pp"), std::string::npos);
}

}  // namespace
}  // namespace ghostrank
