// Ledgers that outgrow memory: the run's report, and the files it leaves on disk.
#include <string>

#include <gtest/gtest.h>

#include "emulator/reporting.h"
#include "emulator/segment_series.h"
#include "tests/emulator/fabric/spills.h"

namespace ghostrank {
namespace {

using testing::Folder;
using testing::Pairs;
using testing::SmallJob;

// 1,208,900 pairs of 64 bytes each: more than a ledger holds.
constexpr int kRanks = 1100;

SmallJob large_all_to_all() {
  SmallJob job(kRanks, 1, FabricKind::virtual_time);
  return job.collective(Func::all_to_all, 16);
}

TEST(Spill, LeavesTheTotalsRightAndEveryPairInItsFile) {
  const Folder folder;
  SmallJob job = large_all_to_all();
  job.spec.run.warmup = 1;  // not in the file
  job.spec.run.iterations = 2;
  RunOptions options;
  options.spill_path = folder / "pairs.csv";
  const Result result = job.run(nullptr, options);
  EXPECT_EQ(result.interrupted, "");
  EXPECT_EQ(result.wire_bytes_per_iteration, kRanks * (kRanks - 1) * 64.0);
  EXPECT_EQ(result.messages_per_iteration, kRanks * (kRanks - 1.0));
  ASSERT_EQ(result.nics.size(), static_cast<std::size_t>(kRanks));
  std::size_t wrong = 0;
  for (const NicTraffic& nic : result.nics)
    wrong += nic.tx_bytes != (kRanks - 1) * 64 || nic.rx_bytes != (kRanks - 1) * 64 ||
             nic.tx_messages != kRanks - 1 || nic.rx_messages != kRanks - 1;
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(result.pairs_file, options.spill_path);
  EXPECT_TRUE(result.pairs.empty());
  Pairs pairs;
  testing::add_rows(options.spill_path, pairs);
  EXPECT_EQ(pairs.size(), kRanks * (kRanks - 1u));
  for (const auto& [pair, cell] : pairs) wrong += cell.bytes != 2 * 64 || cell.messages != 2;
  EXPECT_EQ(wrong, 0u);
}

// The other shard's ledger would fit into memory, but must go to its file, too.
TEST(Spill, OfOneShardSendsTheOthersToTheirFilesToo) {
  const Folder folder;
  SmallJob job = testing::uneven_job(FabricKind::virtual_time);
  job.spec.run.shards = 2;
  RunOptions options;
  options.spill_path = folder / "pairs.csv";
  const Result result = job.run(nullptr, options);
  EXPECT_EQ(result.interrupted, "");
  EXPECT_EQ(result.messages_per_iteration, testing::kUnevenPairs);
  Pairs pairs;
  for (const char* shard : {".0", ".1"}) testing::add_rows(options.spill_path + shard, pairs);
  EXPECT_EQ(pairs.size(), static_cast<std::size_t>(testing::kUnevenPairs));
  EXPECT_EQ(result.pairs_file, options.spill_path + ".0");
}

// An adaptive run: each iteration is a segment, and begins its files anew.
TEST(Spill, OfIterationsPlayedOneByOneSaysThatItsFileHasOneOfThem) {
  const auto note_of = [](const std::vector<Spilled>& files) {
    SegmentSeries series;
    for (const Spilled in_files : files) {
      SegmentReport one;
      one.spilled = &in_files == &files.front() ? 0 : 1;
      one.in_files = in_files;
      one.spill_paths = {"pairs.csv"};
      series.add(std::move(one), 1, {}, {}, 1);
    }
    Result result;
    report_segment({}, {}, {}, series.take_sum(), {}, {1}, result);
    return result.notes.back();
  };
  EXPECT_NE(note_of({Spilled::all, Spilled::all, Spilled::all})
                .find("overwrites the pairs of the one before: those of the last that outgrew it "
                      "are in pairs.csv,"),
            std::string::npos);
  EXPECT_NE(note_of({Spilled::all, Spilled::some}).find("the run was stopped"), std::string::npos);
}

TEST(Spill, ThatCannotBeWrittenEndsTheRunNamingTheFileAndWhatWasDoneIsKept) {
  const Folder folder;
  SmallJob job = large_all_to_all();
  job.spec.run.iterations = 3;
  Program small = job.program();
  Op op = small.streams[0][0];
  op.func = Func::broadcast;
  small.streams[0] = {op};
  job.workload.roles[0].iterations = {small, job.program()};
  for (const std::string& path : {std::string("/dev/full"), folder / "nowhere/pairs.csv"}) {
    RunOptions options;
    options.spill_path = path;
    const auto control = Control::meet(World{});
    const Result result = job.run(*control, nullptr, options);
    EXPECT_EQ(control->stop(), Stop::failed);
    EXPECT_NE(result.interrupted.find(path + ": "), std::string::npos) << result.interrupted;
    EXPECT_EQ(result.iterations.size(), 1u);
  }
}

}  // namespace
}  // namespace ghostrank
