// What processes tell each other beside the data.
#include <string>

#include <gtest/gtest.h>

#include "tests/emulator/processes.h"
#include "tests/emulator/spills.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

// Process 0, whose ledger fits into memory, learns that the other's did not.
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

}  // namespace
}  // namespace ghostrank
