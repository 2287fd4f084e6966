// Jobs with sparse tensors: real sums by every algorithm that reduces, on every fabric; a scheme
// that leaves out zeros sends the blocks that were drawn; the result reports the sparsity.
#include <gtest/gtest.h>

#include "emulator/traffic/tensor_use.h"
#include "emulator/verify/call_content.h"
#include "profiles/error.h"
#include "tests/emulator/plugins.h"
#include "tests/emulator/processes/processes.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

void use_sparse_server(SmallJob& job) {
  job.spec.collectives.own = testing::load_plugins({GHOSTRANK_SPARSE_PLUGIN});
  job.spec.collectives.algorithm(Func::all_reduce) = "mine/sparse-server";
  job.spec.cluster.servers.count = 1;
}

SmallJob sparse_job(int nodes, int gpus, FabricKind kind, Sparsity sparsity) {
  SmallJob job(nodes, gpus, kind);
  job.spec.tensors = sparsity;
  job.spec.run.verify = true;
  return job;
}

TEST(Tensors, AreSummedUpRightByEveryAlgorithmThatReduces) {
  for (const Algorithm& row : registry()) {
    if (row.ends) continue;
    if (!reduces(row.func) || row.name == "pat" || row.name == "nvlstree") continue;
    SCOPED_TRACE(std::string(row.library) + "/" + std::string(row.name));
    for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time})
      for (const Overlap overlap : {Overlap::random, Overlap::all, Overlap::none}) {
        SmallJob job = sparse_job(row.name == "nvls" ? 1 : 4, 2, kind, {0.1, 100, overlap});
        job.spec.collectives.library = row.library;
        job.spec.collectives.algorithm(row.func) = row.name;
        job.spec.run.iterations = 2;
        const std::uint64_t count = row.func == Func::reduce_scatter ? 401 : 3001;
        for (const DataType type : {DataType::int32, DataType::bfloat16})
          job.collective(row.func, count, type, row.func == Func::reduce ? 3 : 0, 7);
        const Result result = job.run();
        ASSERT_EQ(result.interrupted, "");
        EXPECT_GT(result.verify->checked_elements, 0u);
        EXPECT_EQ(result.verify->wrong_elements, 0u);
      }
  }
}

// One call in each of two iterations; only the second is measured.
TEST(Tensors, ASchemeThatLeavesOutZerosSendsTheBlocksThatWereDrawn) {
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time})
    for (const Overlap overlap : {Overlap::random, Overlap::all, Overlap::none}) {
      SmallJob job = sparse_job(4, 1, kind, {0.23, 256, overlap});
      use_sparse_server(job);
      job.spec.run.warmup = 1;
      job.collective(Func::all_reduce, 40 * 256 + 13, DataType::float32, 0, 9);
      const Result result = job.run();
      EXPECT_EQ(result.verify->checked_elements, 4u * (40 * 256 + 13));
      EXPECT_EQ(result.verify->wrong_elements, 0u);
      const Collective c{Func::all_reduce, 4, 40 * 256 + 13, 4, 0};
      const TensorContent drawn =
          *content_of(job.spec, job.workload, job.program().streams[0][0], 0, 1, c).tensor;
      ASSERT_EQ(result.pairs.size(), 8u);
      std::uint64_t somewhere = 1, elements = 0;
      for (std::uint64_t b = 0; b < 41; ++b) {
        bool any = false;
        for (GroupRank r = 0; r < 4; ++r) any = any || drawn.nonzero(r, b);
        if (!any) continue;
        ++somewhere;
        elements += b == 40 ? 13 : 256;
      }
      for (const PairTraffic& pair : result.pairs) {
        const bool up = pair.target_nic == Nic(4);
        const GroupRank r = (up ? pair.source_nic : pair.target_nic).value();
        std::uint64_t blocks = 1;  // 1: the end note
        for (std::uint64_t b = 0; b < 41; ++b) blocks += drawn.nonzero(r, b);
        const std::uint64_t notes = up ? blocks : somewhere;
        const std::uint64_t bytes = (up ? drawn.nonzero_elements(r) : elements) * 4 + notes * 16;
        EXPECT_EQ(pair.messages, static_cast<double>(notes));
        EXPECT_EQ(pair.bytes, static_cast<double>(bytes));
      }
    }
}

TEST(Tensors, WithoutRealDataTheSameBlocksAreSent) {
  SmallJob job = sparse_job(4, 1, FabricKind::virtual_time, {0.3, 64, Overlap::random});
  use_sparse_server(job);
  job.collective(Func::all_reduce, 50'000, DataType::float32, 0, 1);
  const std::string verified = testing::ledger_text(job.run());
  job.spec.run.verify = false;
  EXPECT_EQ(testing::ledger_text(job.run()), verified);
  testing::expect_alike_with_shards(job, {2, 3});
  job.spec.run.seed = 2;
  EXPECT_NE(testing::ledger_text(job.run()), verified);
}

TEST(Tensors, ThatNobodyNamesAreDenseToASchemeAndToVerify) {
  SmallJob job = sparse_job(3, 1, FabricKind::virtual_time, {0, 256, Overlap::random});
  use_sparse_server(job);
  job.collective(Func::all_reduce, 1000, DataType::float32, 0, 1)
      .collective(Func::all_reduce, 1000);
  const Result result = job.run();
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  ASSERT_EQ(result.pairs.size(), 6u);
  // The first call sends only end notes; the second also four blocks each way.
  for (const PairTraffic& pair : result.pairs) {
    EXPECT_EQ(pair.messages, 1 + 4 + 1);
    EXPECT_EQ(pair.bytes, 6 * 16 + 4000);
  }
}

TEST(Tensors, AResultSaysHowMuchOfThemIsNotZero) {
  SmallJob job = sparse_job(4, 1, FabricKind::virtual_time, {0.1, 100, Overlap::none});
  job.collective(Func::all_reduce, 10'000, DataType::float32, 0, 1)
      .collective(Func::all_reduce, 10'000, DataType::float32, 0, 2)
      .collective(Func::all_reduce, 10'000);
  const Result result = job.run();
  ASSERT_TRUE(result.tensors.has_value());
  EXPECT_EQ(result.tensors->calls, 2u);
  EXPECT_EQ(result.tensors->bytes, 2u * 4 * 40'000);
  EXPECT_EQ(result.tensors->nonzero_bytes, 2u * 4 * 4'000);
  EXPECT_DOUBLE_EQ(result.tensors->density(), 0.1);
  EXPECT_DOUBLE_EQ(result.tensors->union_density, 0.4);
  job.spec.tensors.reset();
  EXPECT_FALSE(job.run().tensors.has_value());
}

TEST(Tensors, ThatCannotBeAreRefused) {
  SmallJob unnamed = sparse_job(2, 1, FabricKind::virtual_time, {0.1});
  unnamed.collective(Func::all_reduce, 1000);
  EXPECT_THROW(unnamed.run(), Error);
  SmallJob crowded = sparse_job(4, 1, FabricKind::virtual_time, {0.3, 256, Overlap::none});
  crowded.collective(Func::all_reduce, 1000, DataType::float32, 0, 1);
  EXPECT_THROW(crowded.run(), Error);
}

TEST(TensorsOverLibfabric, AreSummedUpRightAndSentAsInVirtualTime) {
  const auto job_on = [](FabricKind kind) {
    SmallJob job = sparse_job(4, 1, kind, {0.2, 256, Overlap::random});
    use_sparse_server(job);
    job.spec.run.iterations = 2;
    job.collective(Func::all_reduce, 30'000, DataType::float32, 0, 1)
        .collective(Func::reduce_scatter, 5'000, DataType::int32, 0, 2);
    return job;
  };
  const auto outcomes = testing::run_processes(
      3,
      [&](const World& world) {
        const auto control = Control::meet(world);
        const Result result = job_on(FabricKind::ofi).run(*control);
        EXPECT_EQ(result.interrupted, "");
        if (world.rank == 0) {
          EXPECT_EQ(result.verify->checked_elements, 2u * 4 * 35'000);
          EXPECT_EQ(result.verify->wrong_elements, 0u);
        }
        control->close();
        return testing::ledger_text(result);
      },
      std::chrono::seconds(60));
  testing::expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[0].said, testing::ledger_text(job_on(FabricKind::virtual_time).run()));
}

}  // namespace
}  // namespace ghostrank
