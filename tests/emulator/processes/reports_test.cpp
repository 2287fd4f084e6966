// Reports between processes may be larger than a control message, and lead all processes to the
// same conclusions.
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "profiles/load/load.h"
#include "tests/emulator/fabric/spills.h"
#include "tests/emulator/processes/processes.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

// Larger than a frame of the control plane: processes compare the hashes of configurations.
TEST(Agreement, AConfigurationMayBeLargerThanAControlMessage) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    SmallJob small(2, 1, FabricKind::ofi);
    small.collective(Func::all_reduce, 1000);
    LoadedJob job;
    job.spec = small.spec;
    job.config_json.assign(kMaxFrameBytes + 1, ' ');
    Observer nobody;
    const Result result = run_job(job, small.workload, *control, {}, nobody);
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[0].said, "");
}

// Each process's report is larger than a frame: the labels of its spans have 512 KiB.
TEST(Reports, ATraceMayBeLargerThanAControlMessage) {
  static constexpr std::size_t kLabel = 512 << 10, kSpans = 130;
  static_assert(kLabel * kSpans > kMaxFrameBytes);
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.run.iterations = kSpans;
    job.spec.run.stall_timeout_s = 20;
    job.program().labels = {std::string(kLabel, 'x')};
    job.compute(kPicosPerMicro).collective(Func::barrier, 0);
    RunOptions options;
    options.trace_ranks = world_ranks(2);
    const auto control = Control::meet(world);
    const Result result = job.run(*control, nullptr, options);
    if (world.rank == 0) {
      EXPECT_EQ(result.iterations.size(), kSpans);
      std::size_t of_rank[2] = {};
      for (const Span& span : result.spans) {
        EXPECT_EQ(span.label.size(), kLabel);
        ++of_rank[span.rank.index()];
      }
      EXPECT_GE(of_rank[0], kSpans);
      EXPECT_GE(of_rank[1], kSpans);
    }
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[0].said, "");
}

// Process 0's ledger fits into memory; it must learn that the other's did not.
TEST(Reports, ALedgerThatOutgrowsMemoryOnOneHostSendsTheOthersToTheirFilesToo) {
  const testing::Folder folder;
  RunOptions options;
  options.spill_path = folder / "pairs.csv";
  const auto outcomes = testing::run_processes(
      2,
      [&](const World& world) {
        const SmallJob job = testing::uneven_job(FabricKind::ofi);
        const auto control = Control::meet(world);
        const Result result = job.run(*control, nullptr, options);
        if (world.rank == 0) {
          EXPECT_EQ(result.messages_per_iteration, testing::kUnevenPairs);
          EXPECT_EQ(result.nics.size(), 2u * testing::kHalf);
          EXPECT_TRUE(result.pairs.empty());
        }
        control->close();
        return result.interrupted;
      },
      std::chrono::seconds(60));
  testing::expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[0].said, "");
  testing::Pairs pairs;
  for (const char* host : {".0", ".1"}) testing::add_rows(options.spill_path + host, pairs);
  EXPECT_EQ(pairs.size(), static_cast<std::size_t>(testing::kUnevenPairs));
}

// All processes must judge a warm-up for `auto` alike.
TEST(Reports, AllProcessesJudgeByTheSameSummary) {
  const auto outcomes = testing::run_processes(3, [](const World& world) {
    SmallJob job(3, 1, FabricKind::ofi);
    job.spec.run.iterations = 5;
    job.compute(kPicosPerMilli).collective(Func::all_reduce, 10'000);
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    control->close();
    const Fidelity& f = result.fidelity;
    std::ostringstream text;
    text << result.interrupted << f.lateness_us_p50 << " " << f.lateness_us_p99 << " "
         << f.lateness_us_max << " " << f.rate_error << " " << f.run_queue_wait << " "
         << f.loop_busy;
    return text.str();
  });
  testing::expect_all_ok(outcomes);
  for (const auto& o : outcomes) EXPECT_EQ(o.said, outcomes[0].said);
}

}  // namespace
}  // namespace ghostrank
