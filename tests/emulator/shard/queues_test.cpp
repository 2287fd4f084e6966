// Streams that several workers serve, as in a process group of gloo: collectives start in order;
// several run at the same time and share the NICs.
#include <gtest/gtest.h>

#include "profiles/workload/program_builder.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

constexpr std::uint64_t kBig = 4 << 20, kSmall = 1 << 18;  // elements

// Rank 0's spans on two nodes, for a queue of one big collective and two small ones.
std::vector<Span> spans_of(std::uint8_t workers) {
  ProgramBuilder out({"compute", "comm"});
  out.at_once(1, workers);
  for (const std::uint64_t count : {kBig, kSmall, kSmall})
    out.collective(1, std::to_string(count), Func::all_reduce, 0, DataType::float32, count);
  out.after(0, 1);
  out.compute(0, "after all", kPicosPerMilli);
  SmallJob job(2, 1, FabricKind::virtual_time);
  job.spec.collectives.library = "gloo";
  job.spec.cluster.nic.rate_bps = 10e9;
  job.program() = out.take();
  RunOptions options;
  options.trace_ranks = {WorldRank(0)};
  const auto control = Control::meet(World{});
  std::vector<Span> collectives;
  std::vector<Span> computes;
  for (Span& span : job.run(*control, nullptr, options).spans)
    if (span.kind != 3) (span.kind == 1 ? collectives : computes).push_back(std::move(span));
  std::sort(collectives.begin(), collectives.end(), [](const Span& a, const Span& b) {
    return std::pair(a.start, a.slot) < std::pair(b.start, b.slot);
  });
  collectives.insert(collectives.end(), computes.begin(), computes.end());
  return collectives;
}

Picoseconds end_of(const Span& span) { return span.start + span.duration; }

TEST(AQueueOfTwoWorkers, StartsTheNextCollectiveWhenEitherOfTwoHasEnded) {
  const std::vector<Span> spans = spans_of(2);
  ASSERT_EQ(spans.size(), 4u);
  const auto& [big, first, second, after] = std::tie(spans[0], spans[1], spans[2], spans[3]);
  EXPECT_EQ(big.label, std::to_string(kBig));
  EXPECT_EQ(first.start, big.start);
  EXPECT_NE(first.slot, big.slot);
  EXPECT_EQ(second.start, end_of(first));
  EXPECT_EQ(second.slot, first.slot);
  EXPECT_LT(end_of(second), end_of(big));
  EXPECT_EQ(after.start, end_of(big)) << "what comes after the queue waits for all of it";
}

TEST(AQueueOfOneWorker, RunsItsCollectivesOneAfterTheOther) {
  const std::vector<Span> spans = spans_of(1);
  ASSERT_EQ(spans.size(), 4u);
  for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_EQ(spans[i].start, end_of(spans[i - 1]));
}

TEST(AQueueOfTwoWorkers, KeepsBothCollectivesBusyOnOneLink) {
  // The link is the limit either way, so running together takes as long as running in sequence.
  const std::vector<Span> two = spans_of(2), one = spans_of(1);
  EXPECT_NEAR(static_cast<double>(two[3].start), static_cast<double>(one[3].start),
              0.02 * static_cast<double>(one[3].start));
  EXPECT_GT(two[1].duration, one[1].duration * 3 / 2);
}

// The first stream has a call of two workers in flight while it waits for another stream's call.
TEST(AQueueOfTwoWorkers, IsExposedOnceWhereItsStreamWaitsMeanwhile) {
  ProgramBuilder out({"compute", "comm"});
  out.at_once(0, 2);
  out.collective(0, "own", Func::all_reduce, 0, DataType::float32, kBig);
  out.collective(1, "other", Func::all_reduce, 1, DataType::float32, kBig);
  out.after(0, 1);
  SmallJob job(2, 1, FabricKind::virtual_time);
  job.workload.group_names.push_back("other");
  job.workload.groups.push_back({1, job.workload.groups[0].members});
  job.spec.cluster.nic.rate_bps = 10e9;
  job.program() = out.take();
  const Result result = job.run();
  EXPECT_NEAR(result.iterations[0].exposed_comm_seconds, result.iterations[0].seconds, 1e-12);
}

}  // namespace
}  // namespace ghostrank
