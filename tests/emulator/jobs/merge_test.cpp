// Workloads of several jobs as one, and how many iterations each of them plays.
#include "profiles/workload/merge.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/several_jobs.h"
#include "profiles/error.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

TEST(Merge, NumbersGroupsAndCountsOfEveryJob) {
  SmallJob a(2, 1, FabricKind::memory), b(3, 1, FabricKind::memory);
  a.collective(Func::all_gather_v, std::make_shared<std::vector<std::uint64_t>>(2, 5));
  b.collective(Func::all_gather_v, std::make_shared<std::vector<std::uint64_t>>(3, 7));
  const Workload all = merge({{"a", a.workload}, {"b", b.workload}});
  EXPECT_EQ(all.ranks, 5);
  EXPECT_EQ(all.group_names, (std::vector<std::string>{"a/all", "b/all"}));
  EXPECT_EQ(all.groups[1].members,
            (std::vector<WorldRank>{WorldRank(2), WorldRank(3), WorldRank(4)}));
  const Op& op = all.roles[1].iterations[0].streams[0].front();
  EXPECT_EQ(op.group, 1);
  EXPECT_EQ(elements_of(all, op), 21u);
  EXPECT_EQ(job_of(all, WorldRank(1)), 0);
  EXPECT_EQ(job_of(all, WorldRank(2)), 1);
}

TEST(Merge, RefusesWhatOnlyAJobAloneMayHave) {
  SmallJob job(2, 1, FabricKind::memory);
  job.workload.servers = 1;
  EXPECT_THROW(merge({{"a", job.workload}}), Error);
}

// ---- How many iterations ----

std::vector<IterationReport> steps_of(std::size_t count, double seconds) {
  IterationReport one;
  one.seconds = seconds;
  return std::vector<IterationReport>(count, one);
}

TEST(IterationsTogether, LastAsLongAsTheLongestJob) {
  const std::vector<WorkloadJob> jobs(3);
  const std::vector<std::uint32_t> counts = iterations_together(jobs, {1, 0.1, 4}, {3, 3, 3});
  EXPECT_GE(counts[0], 13u);  // 12 s, and one more
  EXPECT_GE(counts[1], 121u);
  EXPECT_GE(counts[2], 4u);
  EXPECT_LE(counts[1], 200u);
  EXPECT_THROW(iterations_together(jobs, {1, 1e-9, 1}, {3, 3, 3}), Error);
}

TEST(CutOrExtend, MeasuresWhatEndedBeforeTheLastJobHadItsIterations) {
  std::vector<JobReport> jobs(2);
  jobs[0].iterations = steps_of(70, 0.1);
  jobs[1].iterations = steps_of(4, 2);
  EXPECT_FALSE(cut_or_extend(jobs, {3, 3}).has_value());
  EXPECT_EQ(jobs[0].iterations.size(), 60u);  // until 6 s
  EXPECT_EQ(jobs[1].iterations.size(), 3u);
}

TEST(CutOrExtend, WantsMoreOfAJobThatEndedTooEarly) {
  std::vector<JobReport> jobs(2);
  jobs[0].iterations = steps_of(50, 0.1);
  jobs[1].iterations = steps_of(4, 2);
  const auto more = cut_or_extend(jobs, {3, 3});
  ASSERT_TRUE(more.has_value());
  EXPECT_GE(more->at(0), 61u);
  EXPECT_EQ(more->at(1), 4u);
  EXPECT_EQ(jobs[0].iterations.size(), 50u);
}

}  // namespace
}  // namespace ghostrank
