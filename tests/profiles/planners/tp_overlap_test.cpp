// Tensor-parallel calls beside products and between their parts.
#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "tests/profiles/planners/llama3_8b.h"
#include "tests/profiles/planners/megatron_support.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::CallSums;
using test::kLlamaHidden;
using test::kLlamaLayers;
using test::kLlamaTokens;
using test::sums_of;

using Plan = test::MegatronJob;

constexpr std::uint64_t kStates = kLlamaTokens * kLlamaHidden * 2;  // bytes of a micro-batch, whole

Plan sequence_parallel(int tp, bool overlap) {
  Plan plan{.tp = tp, .dp = 2, .micro_batches = 3, .sequence = true, .per_node = tp};
  if (overlap) plan.more = ", tp_comm_overlap: true";
  return plan;
}

CallSums tp_sums(const Plan& plan) {
  const Workload workload = plan.workload();
  return sums_of(workload.roles[0].iterations.back(), workload, "tp");
}

class TpOverlap : public testing::TestWithParam<int> {};

// Per layer, a ring replaces each of two gathers forward and two backward, and four calls replace
// each of two reduce-scatters forward. A rank still sends the same number of bytes.
TEST_P(TpOverlap, MovesTheSameBytesInParts) {
  const auto tp = static_cast<std::uint64_t>(GetParam());
  CallSums whole = tp_sums(sequence_parallel(GetParam(), false)),
           parts = tp_sums(sequence_parallel(GetParam(), true));
  const std::uint64_t halves = 2 * kLlamaLayers * 3, ring = (tp - 1) * kStates / tp;
  EXPECT_EQ(whole.sent, 0u);
  EXPECT_EQ(parts.sent, 2 * halves * ring);
  EXPECT_EQ(parts.received, parts.sent);
  EXPECT_EQ(whole.bytes[Func::all_gather] - parts.bytes[Func::all_gather],
            2 * halves * kStates / tp);
  EXPECT_EQ(parts.bytes[Func::reduce_scatter], whole.bytes[Func::reduce_scatter]);
  EXPECT_EQ(parts.calls[Func::reduce_scatter] - whole.calls[Func::reduce_scatter], 3 * halves);
  EXPECT_EQ(parts.bytes[Func::all_reduce], whole.bytes[Func::all_reduce]);
}
INSTANTIATE_TEST_SUITE_P(Degrees, TpOverlap, testing::Values(2, 4, 8));

TEST(TpOverlap, EndsWithEveryScheduleAndRecomputation) {
  for (const char* schedule : {"1f1b", "zb-h1", "interleaved, interleave: 2"})
    for (const char* recompute : {"none", "selective", "full"}) {
      Plan plan = sequence_parallel(4, true);
      plan.pp = 2;
      plan.micro_batches = 4;
      plan.recompute = recompute;
      plan.more += std::string(", schedule: ") + schedule;
      const Workload workload = plan.workload();
      EXPECT_EQ(test::unmatched_transfers(workload), "") << schedule;
      for (const Role& role : workload.roles)
        EXPECT_TRUE(test::streams_end(role.iterations.back())) << schedule << ", " << recompute;
    }
}

TEST(TpOverlap, IsRefusedWhereTransformerEngineHasNone) {
  const auto error = [](const Plan& plan) {
    const std::string message = test::error_of([&] { plan.workload(); });
    return message.substr(message.find(": ") + 2);
  };
  Plan plan = sequence_parallel(4, true);
  plan.sequence = false;
  EXPECT_EQ(error(plan),
            "parallel.tp_comm_overlap cuts gathers and reduce-scatters of the sequence; use "
            "parallel.sequence_parallel=true");
  plan = sequence_parallel(4, true);
  plan.per_node = 2;
  EXPECT_EQ(error(plan),
            "parallel.tp_comm_overlap copies between GPUs of a node, which has 2, and parallel.tp "
            "is 4; use a smaller tp, or leave it out");
  plan = sequence_parallel(4, true);
  plan.model = "mixtral-8x7b";
  EXPECT_EQ(error(plan),
            "parallel.tp_comm_overlap is played for dense layers with attention of heads alone; "
            "leave it out for latent attention, experts and multi-token prediction");
}

// The products for the weight gradients of qkv, fc1 and the head do not need the call that is in
// flight, so they run beside it.
TEST(TensorParallelGradients, AreReducedBesideAProductOrAfterIt) {
  Plan plan{.tp = 2, .dp = 1, .per_node = 2};
  const auto beside_a_call = [&] {
    std::size_t products = 0;
    bool under_way = false;
    const Program program = plan.workload().roles[0].iterations.back();
    for (const Op& op : program.streams[0]) {
      if (op.kind == Op::Kind::record) under_way = true;
      if (op.kind == Op::Kind::wait) under_way = false;
      products += op.kind == Op::Kind::compute && under_way;
    }
    return products;
  };
  const CallSums beside = tp_sums(plan);
  EXPECT_EQ(beside_a_call(), 2 * kLlamaLayers + 1);
  plan.more = ", async_tensor_model_parallel_allreduce: false";
  const CallSums behind = tp_sums(plan);
  EXPECT_EQ(beside_a_call(), 0u);
  EXPECT_EQ(behind.bytes, beside.bytes);
  EXPECT_EQ(behind.calls, beside.calls);
}

}  // namespace
}  // namespace ghostrank
