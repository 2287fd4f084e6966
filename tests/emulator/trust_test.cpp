// What a run says of itself: the errors of its figures, and how long its threads were held up.
// Clocks are given.
#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/host/cpu_quota.h"
#include "emulator/host/run_delay.h"
#include "emulator/network/links.h"
#include "emulator/result/figures.h"
#include "emulator/shard/measured/held_up.h"

namespace ghostrank {
namespace {

std::vector<IterationReport> steps(const std::vector<std::pair<double, double>>& of) {
  std::vector<IterationReport> all;
  for (const auto& [seconds, late] : of) {
    IterationReport i;
    i.seconds = seconds;
    i.late_seconds = late;
    i.exposed_comm_seconds = seconds / 10;
    all.push_back(i);
  }
  return all;
}

Figure figure(const std::vector<IterationReport>& iterations, const std::string& name) {
  for (const Figure& f : step_figures(iterations))
    if (f.name == name) return f;
  return {"none", -1};
}

// Every second step is 1.09 % late: the mean gains only half of that, and hides it.
TEST(Figures, OfTheMedianFollowTheMedianStep) {
  std::vector<std::pair<double, double>> many;
  for (int i = 0; i < 101; ++i) many.emplace_back(i % 2 == 0 ? 1.0109 : 1, i % 2 == 0 ? 0.0109 : 0);
  EXPECT_NEAR(figure(steps(many), "step_time.median").error, 0.0109, 1e-9);
  EXPECT_NEAR(figure(steps(many), "step_time.mean").error, 0.0109 * 51 / 101, 1e-9);
  EXPECT_FALSE(figure(steps(many), "step_time.median").valid());
  EXPECT_TRUE(figure(steps(many), "step_time.mean").valid());
}

TEST(Figures, OneLateStepSpoilsWhatDependsOnItOnly) {
  std::vector<std::pair<double, double>> all(100, {1, 0});
  all[40] = {3, 2};
  all[70] = {1.5, 0.5};
  EXPECT_EQ(figure(steps(all), "step_time.median").error, 0);
  EXPECT_FALSE(figure(steps(all), "step_time.mean").valid());
  EXPECT_FALSE(figure(steps(all), "step_time.cv").valid());
  EXPECT_NEAR(figure(steps(all), "step_time.p99").error, 0.5, 1e-9);
  EXPECT_EQ(figure(steps(all), "exposed_comm").error, 0);
}

// Of 110 steps the second longest is p99. Nothing was late, but it stands alone.
TEST(Figures, OfTheTailAreValidWhereTheStepsBelowAgree) {
  std::vector<std::pair<double, double>> all(110, {1, 0});
  all[0] = {1.03, 0};
  EXPECT_EQ(figure(steps(all), "step_time.p99").error, 0);
  all[60] = {1.02, 0};
  EXPECT_NEAR(figure(steps(all), "step_time.p99").error, 0.02, 1e-9);
  EXPECT_FALSE(figure(steps(all), "step_time.p99").valid());
}

// Steps after a late one make up for it: the chain was not as late as it seemed.
TEST(Figures, LatenessThatIsMadeUpForIsNoError) {
  EXPECT_NEAR(figure(steps({{1.2, 0.2}, {0.8, -0.2}, {1, 0}}), "step_time.mean").error, 0, 1e-12);
}

TEST(Figures, ThatNothingIsKnownOfAreNotValid) {
  EXPECT_EQ(error_of(1, 0), kErrorUnknown);
  EXPECT_EQ(error_of(0, 0), 0);
  EXPECT_EQ(figure(steps({{1, 1.5}}), "step_time.median").error, kErrorUnknown);
  EXPECT_EQ(figure(steps({{1, 0}}), "step_time.p99").error, -1);  // of too few steps
  EXPECT_TRUE(step_figures({}).empty());
}

// A part of a step may be off by all that was added to the step.
TEST(Figures, OfAPartAreHeldAgainstThePart) {
  EXPECT_NEAR(figure(steps({{1.005, 0.005}}), "step_time.median").error, 0.005, 1e-9);
  EXPECT_NEAR(figure(steps({{1.005, 0.005}}), "exposed_comm").error, 0.005 / 0.0955, 1e-9);
}

// Measured with a quota of 0.3 cores: calls without slip were 24 % too short, in steps that were
// 27 % too long.
TEST(Figures, OfASlowDownAreThoseOfBothPlays) {
  JobReport job;
  job.name = "a";
  job.iterations.resize(4);
  for (IterationReport& i : job.iterations) i.seconds = 2;
  job.alone = job.iterations;
  for (const Figure& figure : job_figures(job)) EXPECT_TRUE(figure.valid()) << figure.name;
  for (IterationReport& i : job.alone) i.late_seconds = 1;
  const std::vector<Figure> figures = job_figures(job);
  EXPECT_FALSE(is_valid(figures, "jobs.a.alone.mean"));
  EXPECT_TRUE(is_valid(figures, "jobs.a.step_time.mean"));
  EXPECT_FALSE(is_valid(figures, "jobs.a.slowdown"));
}

TEST(Figures, OfCallsAreNotValidWhereTheMedianStepIsNot) {
  const std::vector<Figure> late = step_figures(steps({{1.27, 0.27}, {1.27, 0.27}})),
                            kept_up = step_figures(steps({{1.005, 0.005}, {1.005, 0.005}}));
  EXPECT_NEAR(call_error(0, late), 0.27, 1e-9);
  EXPECT_EQ(call_error(0.9, late), 0.9);
  EXPECT_EQ(call_error(0, kept_up), 0);
  EXPECT_EQ(call_error(0.02, kept_up), 0.02);
  EXPECT_EQ(call_error(0.02, {}), 0.02);  // of virtual time
}

constexpr std::int64_t kMilli = 1'000'000;

TEST(HeldUp, CountsTimeThatWasTakenFromAThreadAtWork) {
  HeldUp h;
  h.begin({0, 0});
  h.rest({10 * kMilli, 7 * kMilli});  // 3 ms of 10 without the core
  EXPECT_EQ(h.taken_ns(), 3 * kMilli);
  h.wake({20 * kMilli, 7 * kMilli}, 20 * kMilli, false);
  h.rest({21 * kMilli, 8 * kMilli});
  EXPECT_EQ(h.total_ns(), 3 * kMilli);
}

TEST(HeldUp, CountsAWaitThatEndsLateOnlyWhereWorkWasDue) {
  HeldUp h;
  h.begin({0, 0});
  h.rest({0, 0});
  h.wake({5 * kMilli, 0}, HeldUp::kNoDeadline, false);
  EXPECT_EQ(h.total_ns(), 0);
  h.rest({5 * kMilli, 0});
  h.wake({8 * kMilli, 0}, 9 * kMilli, false);  // a message woke it earlier
  EXPECT_EQ(h.total_ns(), 0);
  h.rest({8 * kMilli, 0});
  h.wake({10 * kMilli + HeldUp::kWakes, 0}, 10 * kMilli, false);  // as fast as waking up is
  EXPECT_EQ(h.total_ns(), 0);
  h.rest({11 * kMilli, 0});
  EXPECT_EQ(h.taken_ns(), kMilli - HeldUp::kWakes);
  h.wake({15 * kMilli, 0}, 12 * kMilli, false);
  EXPECT_EQ(h.total_ns(), kMilli - HeldUp::kWakes + 3 * kMilli - HeldUp::kWakes);
}

TEST(HeldUp, AMessageMayHaveWaitedAsLongAsTheThreadCouldNotRun) {
  HeldUp h;
  h.begin({0, 0});
  h.rest({0, 0});
  h.wake({4 * kMilli, 0}, 10 * kMilli, false);
  EXPECT_EQ(h.lag_ns(0), 0);
  EXPECT_EQ(h.lag_ns(3 * kMilli), 3 * kMilli);
  EXPECT_EQ(h.lag_ns(9 * kMilli), 4 * kMilli);  // not before it blocked
  h.rest({4 * kMilli, 0});
  h.wake({9 * kMilli, 0}, 10 * kMilli, true);  // stopped at some time of the wait
  EXPECT_EQ(h.lag_ns(0), 5 * kMilli);
  h.rest({9 * kMilli, 0});
  h.wake({9 * kMilli + 1, 0}, 10 * kMilli, false);
  EXPECT_EQ(h.lag_ns(0), 0);
}

TEST(Link, GivesItsSlipToWhatWaitsForIt) {
  Link link;
  EXPECT_EQ(link.pass({0, 10, 5}, 10, 100).slip, 5);
  EXPECT_EQ(link.pass({2, 12, 0}, 10, 100).slip, 5);
  EXPECT_EQ(link.pass({100, 110, 1}, 10, 100).slip, 1);
}

class Groups : public ::testing::Test {
 protected:
  Groups() {
    std::string name = (std::filesystem::temp_directory_path() / "groups-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~Groups() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::optional<double> throttled() const {
    return throttled_seconds((root_ / "of").string(), root_.string());
  }

  std::filesystem::path root_;
};

TEST_F(Groups, ThrottlingIsThatOfTheWorstGroupAroundTheProcess) {
  write("of", "0::/slice/job\n");
  EXPECT_FALSE(throttled().has_value());
  write("slice/job/cpu.stat", "usage_usec 5\nnr_throttled 2\nthrottled_usec 250000\n");
  EXPECT_EQ(throttled(), 0.25);
  write("slice/cpu.stat", "usage_usec 5\nthrottled_usec 1500000\n");
  EXPECT_EQ(throttled(), 1.5);
}

TEST_F(Groups, VersionOneHasAFolderForEachController) {
  write("of", "3:memory:/a\n2:cpu,cpuacct:/a\n0::/\n");
  write("memory/a/cpu.stat", "throttled_time 9000000000\n");
  write("cpu,cpuacct/a/cpu.stat", "nr_periods 7\nnr_throttled 1\nthrottled_time 2000000000\n");
  EXPECT_EQ(throttled(), 2);
}

TEST(RunDelay, OnlyGrows) {
  const RunDelay delay;
  const auto before = delay.so_far_ns();
  if (!before) GTEST_SKIP() << "the kernel keeps no schedstat";
  EXPECT_GE(delay.so_far_ns().value(), *before);
}

}  // namespace
}  // namespace ghostrank
