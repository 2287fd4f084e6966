// SwitchML beyond one worker per rank and one switch: nodes, rails, racks, and all its functions.
#include "collectives/schemes/shared/rails.h"

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"
#include "collectives/schemes/shared/numbers.h"
#include "collectives/schemes/switchml.h"
#include "switch/quantise.h"
#include "tests/collectives/schemes/small_world.h"
#include "tests/collectives/schemes/switched.h"

namespace ghostrank {
namespace {

using testing::kFewSlots;
using testing::kFuncsOfSwitches;

// `gpus` ranks on each node; each NIC serves `sharing` of them.
Communicator nodes_of(int nodes, int gpus, int sharing = 1) {
  Communicator comm;
  for (int r = 0; r < nodes * gpus; ++r) {
    comm.node_of.push_back(r / gpus);
    comm.nic_of.push_back(r % gpus / sharing);
  }
  return comm;
}

TEST(Rails, AWorkerSpeaksForItsNodeOnItsRail) {
  const Rails all(64, nodes_of(8, 8));
  EXPECT_EQ(all.rails(), 8);
  EXPECT_EQ(all.nodes(), 8);
  EXPECT_EQ(all.worker(3, 5), 5 * 8 + 3);
  const Rails shared(16, nodes_of(2, 8, 4));
  EXPECT_EQ(shared.rails(), 2);
  EXPECT_EQ(shared.worker(1, 1), 12);
  EXPECT_EQ(shared.rail_of(15), 1);
  // The node with the fewest NICs sets the number of rails; spare ranks of other nodes join them.
  Communicator uneven;
  uneven.node_of = {0, 0, 0, 1, 1};
  const Rails rails(5, uneven);
  EXPECT_EQ(rails.rails(), 2);
  EXPECT_EQ(rails.rail_of(2), 0);
}

TEST(Rails, SharesCoverATensorOnce) {
  for (const Func func : kFuncsOfSwitches)
    for (const std::uint64_t count : {0, 1, 31, 32, 1000, 40'000}) {
      const Rails rails(12, nodes_of(3, 4, 2));
      const Call call{0, {func, 12, count, 4, 5}, DataType::int32};
      std::vector<int> covered(work_elements(call.collective, 0), 0);
      for (int rail = 0; rail < rails.rails(); ++rail) {
        const RailShare share(rails, rail, call, 32);
        std::uint64_t chunks = 0;
        for (std::uint64_t c = 0; c < share.chunks(); ++c)
          for (std::uint64_t i = 0; i < share.chunk(c).elements; ++i)
            ++covered.at(share.chunk(c).first + i);
        for (std::uint64_t p = 0; p < share.pieces(); ++p) {
          std::uint64_t of_all = 0;
          for (std::uint64_t c = share.first_of(p); c < share.first_of(p + 1); ++c, ++chunks)
            of_all += share.chunk(c).elements;
          EXPECT_EQ(share.elements(p), of_all);
          if (share.reach() == Reach::everyone) continue;
          std::uint64_t of_ranks = 0;
          for (GroupRank r = 0; r < 12; ++r) of_ranks += share.elements(p, r);
          EXPECT_EQ(of_ranks, of_all);
        }
        EXPECT_EQ(chunks, share.chunks());
      }
      for (const int times : covered) ASSERT_EQ(times, 1) << name_of(func) << " " << count;
    }
}

TEST(SwitchMl, ServesEveryFunctionAndTypeWhateverBecomesOfPackets) {
  struct Shape {
    int nodes, gpus, sharing;
  };
  for (const Shape& s : {Shape{1, 3, 1}, Shape{2, 1, 1}, Shape{5, 1, 1}, Shape{3, 2, 1},
                         Shape{2, 4, 2}, Shape{2, 3, 3}})
    for (const Func func : kFuncsOfSwitches)
      for (const std::uint64_t count : {0, 33, 700}) {
        const int size = s.nodes * s.gpus;
        const auto ends = switchml_ends(size, kFewSlots, nodes_of(s.nodes, s.gpus, s.sharing));
        const AgentProof proof = prove(*ends, {func, size, count, 4, size - 1}, 36);
        ASSERT_TRUE(proof.report.ok) << name_of(func) << " of " << count << ", " << s.nodes << " x "
                                     << s.gpus << ": " << proof.report.error;
        EXPECT_EQ(proof.refused.empty(), !reduces(func)) << proof.refused;
      }
}

TEST(SwitchMl, TwoLevelsOfSwitchesServeMoreThan32Workers) {
  constexpr SwitchMlOptions kWide{.slots = 30, .elements = 32, .timeout = 200'000'000};
  for (const Func func : kFuncsOfSwitches) {
    const auto ends = switchml_ends(40, kWide);
    EXPECT_EQ(ends->helpers().size(), 3u);
    const bool blocks = func == Func::reduce_scatter || func == Func::all_gather;
    if (!blocks) {  // blocks take 40 times the packets, too many for a loss of 30 %
      const AgentProof proof = prove(*ends, {func, 40, 100, 4, 39}, 12);
      EXPECT_TRUE(proof.report.ok) << name_of(func) << ": " << proof.report.error;
    }
    const auto calls = calls_like({func, 40, 70, 4, 3}, DataType::float32, 2);
    const AgentReport lossy = check(*ends, calls, {.misfortunes = {.loss = 0.03}});
    EXPECT_TRUE(lossy.ok) << name_of(func) << ": " << lossy.error;
  }
  const auto racks = switchml_ends(66, kFewSlots, nodes_of(33, 2));
  EXPECT_EQ(racks->helpers().size(), 2u * 3u);
  const AgentProof proof = prove(*racks, {Func::all_reduce, 66, 200, 4, 0}, 12);
  EXPECT_TRUE(proof.report.ok) << proof.report.error;
}

TEST(SwitchMl, Serves1024WorkersAndNoMore) {
  const auto ends = switchml_ends(1024, kFewSlots);
  EXPECT_EQ(ends->helpers().size(), 33u);
  for (const DataType type : {DataType::int32, DataType::float32}) {
    const auto calls = calls_like({Func::all_reduce, 1024, 70, 4, 0}, type, 2);
    const AgentReport report = check(*ends, calls, {.misfortunes = {.loss = 0.01}});
    EXPECT_TRUE(report.ok) << report.error;
  }
  EXPECT_THROW(switchml_ends(1025, kFewSlots), std::invalid_argument);
  EXPECT_NO_THROW(switchml_ends(2048, kFewSlots, nodes_of(1024, 2)));
}

// Plays an all-reduce of these numbers of each rank; returns rank 0's result.
std::vector<float> all_reduced(const Ends& ends, DataType type,
                               const std::vector<std::vector<float>>& numbers) {
  const Collective c{Func::all_reduce, ends.size(), numbers[0].size(), bytes_of(type), 0};
  std::vector<std::vector<std::byte>> tensors;
  for (const std::vector<float>& of_rank : numbers)
    tensors.push_back(bytes_of_floats(type, of_rank));
  testing::SmallWorld world(ends, {0, c, type}, tensors);
  const auto& results = world.play();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  return floats_of(type, results[0]);
}

// Half a unit in the last place of the type.
double rounding(DataType type, double value) {
  const int digits = type == DataType::float32 ? 24 : type == DataType::bfloat16 ? 8 : 11;
  return std::max(std::abs(value) * std::ldexp(1.0, -digits), std::ldexp(1.0, -25));
}

TEST(SwitchMl, FloatsOfAnySizeStayWithinTheBoundOfTheirBlock) {
  std::mt19937 random(7);
  for (const DataType type : {DataType::float32, DataType::bfloat16, DataType::float16})
    for (const int workers : {1, 2, 8, 40}) {
      const auto ends = switchml_ends(workers, kFewSlots);
      std::vector<std::vector<float>> numbers(workers);
      constexpr std::size_t kElements = 32 * 12 + 5;
      for (auto& of_rank : numbers)
        for (std::size_t i = 0; i < kElements; ++i) {  // each block of another magnitude
          const int exponent = static_cast<int>(i / 32) * 2 - 12;
          const float drawn =
              std::ldexp(std::uniform_real_distribution<float>(-1, 1)(random), exponent);
          of_rank.push_back(floats_of(type, bytes_of_floats(type, std::span(&drawn, 1)))[0]);
        }
      const std::vector<float> sums = all_reduced(*ends, type, numbers);
      for (std::size_t i = 0; i < kElements; ++i) {
        double exact = 0;
        float largest = 0;
        for (const auto& of_rank : numbers) exact += of_rank[i];
        for (std::size_t j = i / 32 * 32; j < std::min(kElements, i / 32 * 32 + 32); ++j)
          for (const auto& of_rank : numbers) largest = std::max(largest, std::abs(of_rank[j]));
        const double bound =
            workers == 1 ? 0 : switchml::error_bound(std::ilogb(largest) + 1, workers);
        ASSERT_LE(std::abs(sums[i] - exact), bound + rounding(type, std::abs(exact) + bound))
            << name_of(type) << ", " << workers << " workers, element " << i;
      }
    }
}

// The sums that switch/quantise.h defines for numbers that no exponent suits.
TEST(SwitchMl, ZeroTinyHugeInfiniteAndNoNumbersHaveDefinedSums) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kHuge = std::numeric_limits<float>::max();
  const float nan = std::nanf("");
  const auto sum_of = [&](float a, float b) {
    std::vector<float> block(32, 0.0f), other(32, 0.0f);
    block[0] = a;
    other[0] = b;
    const auto sums = all_reduced(*switchml_ends(2, kFewSlots), DataType::float32, {block, other});
    for (std::size_t i = 1; i < 32; ++i) EXPECT_EQ(sums[i], 0) << a << " " << b;
    return sums[0];
  };
  EXPECT_EQ(sum_of(0, 0), 0);
  EXPECT_EQ(sum_of(1e-40f, 1e-40f), 0) << "below half a step of the least exponent";
  EXPECT_NEAR(sum_of(1e-38f, 1e-38f), 2e-38, 0x1p-126);
  EXPECT_EQ(sum_of(nan, 1), 1) << "no number counts as 0";
  EXPECT_EQ(sum_of(nan, nan), 0);
  EXPECT_NEAR(sum_of(0x1p120f, 0x1p100f), 0x1p120 + 0x1p100, 0x1p92);
  for (const float large : {kInfinity, kHuge}) {  // count as the largest number below 2^127
    EXPECT_NEAR(sum_of(large, 0) / 0x1p127, 1, 1e-6);
    EXPECT_NEAR(sum_of(-large, 0) / 0x1p127, -1, 1e-6);
    EXPECT_EQ(sum_of(large, -large), 0);
  }
  // Of float16 and bfloat16, sums beyond the type's range are infinite.
  const std::vector<std::vector<float>> half(2, std::vector<float>(3, 60'000.0f));
  EXPECT_EQ(all_reduced(*switchml_ends(2, kFewSlots), DataType::float16, half)[0], kInfinity);
}

}  // namespace
}  // namespace ghostrank
