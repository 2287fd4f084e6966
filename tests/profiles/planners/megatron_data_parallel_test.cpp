// Data-parallel ranks of Megatron's plans: their buckets and the calls on them, against closed
// forms that do not use the planner.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "profiles/planners/megatron/buffers.h"
#include "profiles/planners/shared/round_up.h"
#include "tests/profiles/planners/megatron_support.h"
#include "tests/profiles/programs.h"

namespace ghostrank {
namespace {

using test::CallSums;
using test::sums_of;
using Plan = test::MegatronJob;

TEST(MegatronBuckets, PadAsTheDistributedOptimizerDoes) {
  const std::vector<Parameter> parameters{
      {.numel = 1000, .tied = true}, {70, 1}, {300, 1}, {500, 2}, {64, 2}};
  const BufferLayout sharded{true, 600, 6};
  const auto buckets = megatron_buckets(parameters, sharded);
  // From the end: 64 | 500 up to 564; 300 starts at 576 and closes at 876, padded to 3 x 384.
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].numel, round_up(576 + 300, 384));
  EXPECT_EQ(buckets[0].first_unit, 1);
  EXPECT_EQ(buckets[1].numel, 384u);  // the last of unit 1, cut off by the tied embedding
  EXPECT_EQ(buckets[2].numel, round_up(1000, 384));
  EXPECT_EQ(buckets[2].first_unit, 0);

  const auto plain = megatron_buckets(parameters, {false, 0, 6});
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain[0].numel, 1934u);
}

TEST(MegatronDataParallel, ReducesEveryGradientOncePerStep) {
  for (const int dp : {2, 3, 8})
    for (const int micro_batches : {1, 4}) {
      Plan plan{.model = "gpt2", .dp = dp, .micro_batches = micro_batches};
      const Workload workload = plan.workload();
      CallSums sums = sums_of(workload.roles[0].iterations[0], workload, "dp");
      const std::uint64_t padding = (50304 - 50257) * 768;
      EXPECT_EQ(sums.bytes[Func::all_reduce], (124439808 + padding) * 4 + 8);  // and the loss
    }
}

TEST(MegatronDataParallel, GathersWhatItScattered) {
  for (const char* overlap : {"true", "false"}) {
    Plan plan{.model = "gpt2-xl", .tp = 1, .pp = 4, .dp = 4, .micro_batches = 8, .sharded = true};
    plan.more =
        std::string(", overlap_param_gather: ") + overlap + ", overlap_grad_reduce: " + overlap;
    const Workload workload = plan.workload();
    for (const Role& role : workload.roles) {
      CallSums sums = sums_of(role.iterations[0], workload, "dp");
      EXPECT_EQ(sums.bytes[Func::reduce_scatter], 2 * sums.bytes[Func::all_gather]);  // fp32, bf16
      EXPECT_EQ(sums.calls[Func::reduce_scatter], sums.calls[Func::all_gather]);
      EXPECT_GT(sums.calls[Func::all_gather], 0u);
    }
  }
}

// Without the overlap of gradients there is none of parameters: they are gathered after the
// optimizer.
TEST(MegatronDataParallel, GathersBesideTheForwardOnlyIfItReducesBesideTheBackward) {
  for (const bool overlaps : {false, true}) {
    Plan plan{.model = "gpt2", .dp = 2, .sharded = true};
    if (!overlaps) plan.more = ", overlap_grad_reduce: false";
    const Workload workload = plan.workload();
    const Program& program = workload.roles[0].iterations[0];
    std::vector<Func> calls;
    for (const Op& op : program.streams[1])
      if (op.kind == Op::Kind::collective) calls.push_back(op.func);
    EXPECT_EQ(calls.front() == Func::all_gather, overlaps);
  }
}

// Buckets grow with the ranks that reduce them, context-parallel ones too: 24 x 2 ranks have
// buckets of 48,000,000 elements. A closed form of the layout, parameter by parameter.
TEST(MegatronDataParallel, SizesBucketsByTheRanksThatReduceThem) {
  Plan plan{.model = "megatron-1.7b", .cp = 2, .dp = 24, .sharded = true};
  const Workload workload = plan.workload();
  const std::uint64_t h = 2304;
  std::vector<std::uint64_t> reversed{h, h};  // final norm
  for (int layer = 0; layer < 24; ++layer)
    for (const std::uint64_t numel :
         {h, 4 * h * h, 4 * h, 4 * h * h, h, h, 3 * h, 3 * h * h, h, h * h, h, h})
      reversed.push_back(numel);
  reversed.push_back(2048 * h);
  reversed.push_back(51200 * h);
  std::vector<std::uint64_t> expected;
  std::uint64_t open = 0;
  for (const std::uint64_t numel : reversed) {
    open = round_up(open, 64) + numel;
    if (open < 48'000'000) continue;
    expected.push_back(round_up(open, 384) / 48);
    open = 0;
  }
  if (open > 0) expected.push_back(round_up(open, 384) / 48);
  std::vector<std::uint64_t> scattered;
  for (const auto& stream : workload.roles[0].iterations[0].streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::collective && op.func == Func::reduce_scatter)
        scattered.push_back(op.count);
  EXPECT_EQ(scattered, expected);
}

TEST(MegatronDataParallel, CutsBucketsOnTheFirstStageOnly) {
  Plan plan{.model = "megatron-18.4b", .pp = 2, .dp = 2, .micro_batches = 2, .sharded = true};
  const Workload workload = plan.workload();
  EXPECT_GT(sums_of(workload.roles[0].iterations[0], workload, "dp").calls[Func::all_gather], 50u);
  // One bucket, and one more for the tied embedding.
  EXPECT_EQ(sums_of(workload.roles[1].iterations[0], workload, "dp").calls[Func::all_gather], 2u);
}

// From the second chunk of a stage on, all buckets are one group, whose calls are coalesced. The
// last chunk has a bucket of the tied embedding and one of its layers.
TEST(MegatronDataParallel, LaunchesTheBucketsOfALaterChunkTogether) {
  Plan plan{.model = "megatron-18.4b", .pp = 2, .dp = 2, .micro_batches = 2, .sharded = true};
  plan.more = ", schedule: interleaved, interleave: 2";
  const Workload workload = plan.workload();
  ASSERT_EQ(workload.launches.size(), 2U);
  for (const auto& launch : workload.launches) {
    ASSERT_EQ(launch.size(), 2U);
    EXPECT_NE(launch[0].count, launch[1].count);
    EXPECT_EQ(launch[0].func, launch[1].func);
  }
  std::array<int, 2> together{};
  for (std::size_t stage = 0; stage < 2; ++stage)
    for (const OpList& stream : workload.roles[stage].iterations[0].streams)
      for (const Op& op : stream) together[stage] += op.launch != 0 ? 1 : 0;
  EXPECT_EQ(together, (std::array{0, 4}));
  plan.sharded = false;
  EXPECT_TRUE(plan.workload().launches.empty());
}

// Backwards that a stage has computed before its reduce-scatters of gradients.
std::set<int> backwards_before_reductions(const Program& program) {
  std::map<std::uint32_t, std::vector<int>> recorded;  // by event
  int backwards = 0;
  std::string pass;
  for (const Op& op : program.streams[0]) {
    if (op.kind == Op::Kind::record) recorded[op.event].push_back(backwards);
    if (op.kind != Op::Kind::compute) continue;
    const std::string label = program.labels[op.label], now = label.substr(0, label.find(' '));
    if (now != pass && now.starts_with("B")) ++backwards;
    pass = now;
  }
  std::map<std::uint32_t, std::size_t> waits;
  std::set<int> out;
  for (std::size_t s = 1; s < program.streams.size(); ++s) {
    int before = 0;
    for (const Op& op : program.streams[s]) {
      if (op.kind == Op::Kind::wait && recorded.contains(op.event))
        before = recorded[op.event].at(waits[op.event]++);
      if (op.kind == Op::Kind::collective && op.func == Func::reduce_scatter) out.insert(before);
    }
  }
  return out;
}

// Of 16 backwards the 12th is the last of the second chunk, the 16th that of the first. Stage s
// reduces a chunk s backwards later, or after all.
TEST(MegatronDataParallel, ReducesInterleavedChunksOnAllStagesAtOnce) {
  Plan plan{.pp = 4, .dp = 2, .micro_batches = 8, .sharded = true};
  plan.more = ", schedule: interleaved, interleave: 2";
  const Workload workload = plan.workload();
  for (int stage = 0; stage < 4; ++stage)
    EXPECT_EQ(backwards_before_reductions(workload.roles[stage].iterations[0]),
              (std::set{12 + stage, 16}))
        << stage;
}

TEST(MegatronDataParallel, ReducesTheTiedEmbeddingBetweenTheEndsOfThePipeline) {
  Plan plan{.model = "gpt3-175b", .tp = 8, .pp = 4, .dp = 1, .micro_batches = 4};
  const Workload workload = plan.workload();
  for (const std::size_t stage : {0u, 1u, 2u, 3u}) {
    CallSums sums = sums_of(workload.roles[stage].iterations[0], workload, "embedding");
    EXPECT_EQ(sums.bytes[Func::all_reduce], stage == 0 || stage == 3 ? 51200u / 8 * 12288 * 4 : 0u);
  }
  Plan untied{.model = "llama3-8b", .pp = 2, .micro_batches = 2};
  const Workload without = untied.workload();
  EXPECT_EQ(std::count(without.group_names.begin(), without.group_names.end(), "embedding"), 0);
}

}  // namespace
}  // namespace ghostrank
