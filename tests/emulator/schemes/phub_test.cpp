// PHub in the engine, whose servers step weights: times against closed forms, what racks send each
// other, weights against Nesterov's steps.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "collectives/schemes/keyed/nesterov.h"
#include "collectives/schemes/keyed/nesterov_reference.h"
#include "emulator/verify/verify.h"
#include "profiles/error.h"
#include "tests/emulator/schemes/server_job.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::kServerJobRate, testing::seconds_of, testing::server_job, testing::SmallJob;

// PHB-3: k NICs of one box, each as fast as a worker's.
TEST(Phub, TakesTheTimeOfItsBusiestNic) {
  constexpr int kWorkers = 8;
  constexpr std::uint64_t kBytes = 64 << 20;
  for (const int k : {1, 2, 4, 8}) {
    SmallJob job = server_job("phub", kWorkers, 1, kBytes);
    job.spec.cluster.nics_per_node = 8;
    job.spec.cluster.servers.nics = k;
    const double least = std::max(1.0, static_cast<double>(kWorkers) / k) *
                         static_cast<double>(kBytes) * 8 / kServerJobRate;
    EXPECT_NEAR(seconds_of(job), least, 0.02 * least) << k << " NICs";
  }
}

// Racks of m nodes each, a box of k NICs in each. A NIC of a box receives the pushes of its rack
// and its share of what boxes send each other, (m + 2 (r - 1) / r) S / k, and sends as much. Where
// the workers' NICs are the slower ones, the exchange takes what these need. Where those of the
// boxes are, sums of other racks wait behind pushes, of which a NIC of the model holds any number:
// results are late, and at worst follow the pushes.
TEST(PhubRacks, TakeTheTimeOfTheBusiestNicAndSendTheBytesOfTheRule) {
  constexpr std::uint64_t kBytes = 64 << 20;
  const double unit = static_cast<double>(kBytes) * 8 / kServerJobRate;
  for (const auto& [racks, in_rack] : {std::pair(2, 4), std::pair(4, 2), std::pair(4, 4)})
    for (const int k : {1, 2, 4, 8}) {
      SCOPED_TRACE(std::to_string(racks) + " racks of " + std::to_string(in_rack) + " nodes, " +
                   std::to_string(k) + " NICs");
      SmallJob job = server_job("phub_racks", racks * in_rack, racks, kBytes);
      job.spec.cluster.nics_per_node = 8;
      job.spec.cluster.servers.nics = k;
      const Result result = job.run();
      const double across = 2.0 * (racks - 1) / racks;
      const double took = result.iterations.at(0).seconds / unit;
      EXPECT_GT(took, std::max(1.0, (in_rack + across) / k));
      EXPECT_LT(took, 1.02 * std::max(1.0, (2 * in_rack + across) / k));
      if (k >= 2 * in_rack) {
        EXPECT_NEAR(took, 1, 0.02);
      }
      const int first = 8 * racks * in_rack;  // NIC of a box
      double between_boxes = 0;
      for (const PairTraffic& pair : result.pairs)
        if (pair.source_nic.value() >= first && pair.target_nic.value() >= first)
          between_boxes += pair.bytes;
      EXPECT_EQ(between_boxes, racks * across * static_cast<double>(kBytes));
    }
}

// With NICs for other racks alone nothing waits behind pushes: the time is that of the busiest NIC,
// whichever it is.
TEST(PhubRacks, TakeTheTimeOfTheBusiestNicWhereRacksHaveNicsOfTheirOwn) {
  constexpr std::uint64_t kBytes = 64 << 20;
  const double unit = static_cast<double>(kBytes) * 8 / kServerJobRate;
  for (const auto& [racks, in_rack] : {std::pair(2, 4), std::pair(4, 2), std::pair(4, 4)})
    for (const auto& [nodes_nics, rack_nics] :
         {std::pair(1, 1), std::pair(2, 1), std::pair(4, 2)}) {
      SCOPED_TRACE(std::to_string(racks) + " racks of " + std::to_string(in_rack) + " nodes, " +
                   std::to_string(nodes_nics) + " NICs for them, " + std::to_string(rack_nics) +
                   " for other racks");
      SmallJob job = server_job("phub_racks", racks * in_rack, racks, kBytes);
      job.spec.cluster.nics_per_node = 8;
      job.spec.cluster.servers.nics = nodes_nics + rack_nics;
      job.spec.collectives.at_servers.rack_nics = rack_nics;
      const double least = std::max({1.0, static_cast<double>(in_rack) / nodes_nics,
                                     2.0 * (racks - 1) / racks / static_cast<double>(rack_nics)}) *
                           unit;
      EXPECT_NEAR(seconds_of(job), least, 0.02 * least);
    }
}

// PHB-2: ten iterations after two warm-up ones, after which weights begin anew.
SmallJob training_job(FabricKind kind, const char* scheme = "phub") {
  SmallJob job(4, 2, kind);
  job.spec.collectives.algorithm(Func::all_reduce) = scheme;
  job.spec.cluster.servers.count = 2;
  job.spec.collectives.at_servers.chunk_bytes = 4096;
  job.spec.run.verify = true;
  job.spec.run.warmup = 2;
  job.spec.run.iterations = 10;
  job.collective(Func::all_reduce, 20'001, DataType::float32, 0, 1)
      .collective(Func::all_reduce, 5'000, DataType::bfloat16, 0, 2)
      .collective(Func::all_reduce, 3'000, DataType::float16, 0, 3)
      .collective(Func::all_reduce, 700, DataType::int32, 0, 4)
      .collective(Func::all_reduce, 1001);
  return job;
}

TEST(Phub, AnswersWithTheWeightsOfNesterovsSteps) {
  for (const FabricKind kind : {FabricKind::virtual_time, FabricKind::memory})
    for (const bool racks : {false, true}) {
      SmallJob job = training_job(kind, racks ? "phub_racks" : "phub");
      if (racks) job.spec.tensors = Sparsity{0.1, 64};
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      EXPECT_EQ(result.verify->wrong_elements, 0U);
      EXPECT_EQ(result.verify->checked_elements, 10U * 8 * (20'001 + 5'000 + 3'000 + 700 + 1'001));
    }
  for (const char* scheme : {"phub", "phub_racks"})
    testing::expect_alike_with_shards(training_job(FabricKind::virtual_time, scheme), {2, 4});
}

// A rank that receives sums, or weights that missed a step, has wrong elements.
TEST(Phub, WeightsThatAreSumsOrLateAreWrong) {
  constexpr std::uint64_t kCount = 3000;
  const Collective c{Func::all_reduce, 2, kCount, 4, 0};
  TensorResult weights;
  weights.reference = std::make_unique<NesterovReference>(Nesterov{});
  std::vector<float> right(kCount), sums(kCount);
  const auto wrong = [&](std::uint64_t salt, const std::vector<float>& result) {
    RankCall call{c, DataType::float32, 0, salt, false};
    call.expected = &weights;
    return check_work(call, {0, kCount}, reinterpret_cast<const std::byte*>(result.data())).wrong;
  };
  std::vector<float> moments(kCount), late;
  for (std::uint64_t salt = 1; salt <= 10; ++salt) {
    for_each_tile(0, kCount, [&](std::uint64_t index, std::uint64_t n) {
      ValueTile tile;
      sum_values(salt, index, n, tile.data());
      std::copy_n(tile.begin(), n, sums.begin() + static_cast<std::ptrdiff_t>(index));
    });
    late = right;
    take_step({}, right, moments, sums);
    EXPECT_EQ(wrong(salt, right), 0U);
    EXPECT_GT(wrong(salt, sums), kCount * 9 / 10);
    EXPECT_GT(wrong(salt, late), kCount * 9 / 10);
    right[7] += 1;
    EXPECT_EQ(wrong(salt, right), 1U);
    right[7] -= 1;
  }
}

TEST(Phub, RefusesWhatIsNoGradient) {
  SmallJob job = training_job(FabricKind::virtual_time);
  job.spec.training = TrainingSpec{};
  try {
    job.run();
    FAIL() << "trained";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("training.task: servers of schemes/phub step weights"),
              std::string::npos)
        << error.what();
  }
}

TEST(Phub, HoldsWeightsAndMomentumOfNamedTensorsOnly) {
  for (const std::uint32_t tensor : {0U, 1U}) {
    SmallJob job = server_job("phub", 4, 1, 0);
    job.program().streams[0] = {};
    job.collective(Func::all_reduce, 1 << 18, DataType::float32, 0, tensor);
    job.spec.cluster.servers.optimizer_GBps = 1;
    const Result result = job.run();
    ASSERT_EQ(result.servers.size(), 1U);
    EXPECT_EQ(result.servers[0].memory_bytes, (2 * 4 + (tensor > 0 ? 2 : 0)) * (1ULL << 20));
    EXPECT_EQ(result.servers[0].busy > 0, tensor > 0);
  }
}

}  // namespace
}  // namespace ghostrank
