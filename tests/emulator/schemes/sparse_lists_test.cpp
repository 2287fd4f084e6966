// Lists of what is not zero, in the engine: what their formulas say of bytes and time.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/job/nic_rates.h"
#include "tests/emulator/schemes/scale.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::kBlock;
using testing::kSparseNicRate;
using testing::SmallJob;

SmallJob lists_job(int nodes, const Sparsity& sparsity, std::uint64_t elements,
                   const std::string& scheme = "sparse_all_gather") {
  SmallJob job(nodes, 1, FabricKind::virtual_time);
  job.spec.collectives.algorithm(Func::all_reduce) = scheme;
  job.spec.cluster.nic = {kSparseNicRate, 2 * kPicosPerMicro};
  if (sparsity.density < 1) job.spec.tensors = sparsity;
  return job.collective(Func::all_reduce, elements, DataType::float32, 0, 1);
}

// Lists of all that is nonzero are as long as the blocks are many, of which ranks hold whole ones.
TEST(SparseAllGather, SendsTheBytesThatItsPlanCountsHoweverFewTheBlocks) {
  for (const std::uint64_t elements : {1, 100, 12'800, 12'801})
    for (const double density : {.001, .01, .05, .25})
      for (const Overlap overlap :
           {Overlap::random, Overlap::all, Overlap::none, Overlap::measured}) {
        const Sparsity sparsity = overlap == Overlap::measured
                                      ? Sparsity::of_means(density, 2 * density, 4, kBlock)
                                      : Sparsity{density, kBlock, overlap};
        const SmallJob job = lists_job(4, sparsity, elements);
        const TrafficPlan plan = plan_traffic(job.spec, job.workload);
        const Result result = job.run();
        // A rank's mean is rounded to a byte, and the last block may be a short one.
        const double off = 12 + (elements > kBlock && elements % kBlock != 0 ? 12 * 256 * 8 : 0);
        const std::string what = std::to_string(elements) + " elements, density " +
                                 std::to_string(density) + ", " + std::string(name_of(overlap));
        EXPECT_NEAR(static_cast<double>(plan.wire_bytes), result.wire_bytes_per_iteration, off)
            << what;
        EXPECT_GE(result.iterations[0].seconds, plan.step_seconds_at_least) << what;
      }
}

// The baselines: (n-1) d S and (n-1)/n (d + u) S, with an index of four bytes for every float.
TEST(SparseListsInTheNetwork, SendAndTakeWhatTheirFormulasSay) {
  constexpr int kRanks = 4;
  constexpr std::uint64_t kElements = 4'000'000;
  const double whole = static_cast<double>(kElements) * 8;
  for (const double density : {0.2, 0.4})
    for (const Overlap overlap : {Overlap::random, Overlap::all}) {
      SmallJob job = lists_job(kRanks, {density, kBlock, overlap}, kElements);
      const double u = job.spec.tensors->union_density(kRanks);
      Result result = job.run();
      double sent = (kRanks - 1) * density * whole;
      EXPECT_NEAR(result.wire_bytes_per_iteration / kRanks / sent, 1, 0.01);
      EXPECT_NEAR(result.iterations[0].seconds / (sent * 8 / kSparseNicRate), 1, 0.05);
      job.spec.collectives.algorithm(Func::all_reduce) = "sparcml";
      result = job.run();
      // Sums that fill more than half of a part travel without indices.
      sent = (kRanks - 1.0) / kRanks * (density * whole + (u > 0.5 ? whole / 2 : u * whole));
      EXPECT_NEAR(result.wire_bytes_per_iteration / kRanks / sent, 1, 0.01);
      EXPECT_NEAR(result.iterations[0].seconds / (sent * 8 / kSparseNicRate), 1, 0.05);
    }
}

// Four bytes for every index and pieces of 8,192 values, also where no two values are neighbours.
TEST(SparseListsInTheNetwork, HaveOneIndexForEveryValueHoweverTheyLie) {
  for (const char* scheme : {"sparse_all_gather", "sparcml"})
    for (const std::uint64_t block : {1, 2, 256}) {
      SCOPED_TRACE(std::string(scheme) + ", blocks of " + std::to_string(block));
      const SmallJob job = lists_job(4, {0.3, block, Overlap::random}, 800'000, scheme);
      const Result result = job.run();
      const TrafficPlan plan = plan_traffic(job.spec, job.workload);
      EXPECT_NEAR(result.wire_bytes_per_iteration / static_cast<double>(plan.wire_bytes), 1, 0.01);
      EXPECT_NEAR(result.messages_per_iteration / static_cast<double>(plan.wire_messages), 1, 0.03);
    }
}

// Sums are lists in some iterations and whole parts in others, so the plan is a mean over them.
TEST(SparseListsInTheNetwork, AreCountedOnAverageWhereDensitiesChange) {
  for (const char* scheme : {"sparse_all_gather", "sparcml"}) {
    SmallJob job = lists_job(8, {0.8, 8, Overlap::random}, 80'000, scheme);
    job.spec.last_density = 0.001;
    job.spec.run.iterations = 8;
    const TrafficPlan plan = plan_traffic(job.spec, job.workload);
    EXPECT_NEAR(static_cast<double>(plan.wire_bytes) / job.run().wire_bytes_per_iteration, 1, 0.01)
        << scheme;
  }
}

// One NIC is twenty times as slow: the short last piece of a list leaves while that NIC still takes
// the long one before, and must not be in first. Else the call would end without the long piece.
TEST(SparseListsInTheNetwork, KeepTheirOrderAtANicThatIsSlower) {
  constexpr int kRanks = 4;
  using Kind = TopologySpec::Kind;
  for (const auto& [scheme, links] : {std::pair("sparcml", false),
                                      {"sparcml", true},
                                      {"sparse_all_gather", false},
                                      {"sparse_all_gather", true}}) {
    SmallJob job = lists_job(kRanks, {}, 40'000, scheme);
    if (links) job.spec.cluster.topology.kind = Kind::leaf_spine;
    if (links) job.spec.cluster.topology.spines = 1;
    job.spec.run.verify = true;
    job.spec.run.iterations = 3;
    const std::string even = testing::ledger_text(job.run());
    const RateCurve slow({{0, 20 * 8e12 / kSparseNicRate}});
    VectorBy<Nic, std::uint32_t> curve_of(kRanks, NicRates::kConstant);
    curve_of[Nic(2)] = 0;
    job.spec.cluster.nic_rates =
        std::make_shared<const NicRates>(std::vector{slow}, std::move(curve_of));
    const Result result = job.run();
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    EXPECT_EQ(testing::ledger_text(result), even) << scheme << (links ? " over links" : "");
  }
}

}  // namespace
}  // namespace ghostrank
