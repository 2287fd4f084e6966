#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tools/compare/ab/tune.h"

namespace ghostrank {
namespace {

using Settings = std::vector<std::string>;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool holds(const Settings& settings, const std::string& setting) {
  return std::ranges::count(settings, setting) > 0;
}

// A job that sets channels and slice: keys in `set` on the command line, others in its file.
LoadedJob job_with(const std::vector<std::string>& set) {
  LoadedJob job;
  for (const char* key : {"collectives.channels", "collectives.slice"})
    job.entries.push_back({key, "1", std::ranges::count(set, key) > 0 ? "-s" : "job.yaml:7"});
  return job;
}

TEST(AbTune, FindsTheFastestPairAndLeavesOutWhatTheJobRefuses) {
  const Tuning tuning = tune_variant(job_with({}), [](const Settings& more) {
    if (holds(more, "collectives.channels=8")) throw Error("no more than 4 channels");
    if (holds(more, "collectives.slice=64KiB"))
      return holds(more, "collectives.channels=4") ? 0.5 : 0.7;
    return more.empty() ? 1.0 : 0.9;
  });
  EXPECT_EQ(tuning.played, 3 * 6);
  EXPECT_THAT(tuning.settings, ElementsAre("collectives.channels=4", "collectives.slice=64KiB"));
  EXPECT_EQ(tuning.own, 1);
  EXPECT_EQ(tuning.best, 0.5);
  EXPECT_THAT(words_of(tuning), HasSubstr("collectives.slice=64KiB is fastest, 2 times as fast"));
}

TEST(AbTune, KeepsTheJobsOwnWhereNothingIsFasterByAThousandth) {
  const Tuning tuning =
      tune_variant(job_with({}), [](const Settings& more) { return more.empty() ? 1.0 : 0.9995; });
  EXPECT_EQ(tuning.played, 4 * 6);
  EXPECT_THAT(tuning.settings, IsEmpty());
  EXPECT_THAT(words_of(tuning), HasSubstr("the job's own are as fast as any"));
}

TEST(AbTune, LeavesWhatTheCommandLineSets) {
  const Tuning slices = tune_variant(job_with({"collectives.channels"}), [](const Settings& more) {
    return holds(more, "collectives.slice=1MiB") ? 0.5 : 1.0;
  });
  EXPECT_EQ(slices.played, 6);
  EXPECT_THAT(slices.settings, ElementsAre("collectives.slice=1MiB"));
  const Tuning none = tune_variant(job_with({"collectives.channels", "collectives.slice"}),
                                   [](const Settings&) -> double {
                                     ADD_FAILURE() << "there is nothing to play";
                                     return 1;
                                   });
  EXPECT_EQ(none.played, 0);
  EXPECT_THAT(none.settings, IsEmpty());
}

TEST(AbTune, EndsWhereTheJobItselfOrTheMachineIsWrong) {
  EXPECT_THROW(tune_variant(job_with({}), [](const Settings&) -> double { throw Error("wrong"); }),
               Error);
  EXPECT_THROW(tune_variant(job_with({}),
                            [](const Settings& more) -> double {
                              if (more.empty()) return 1;
                              throw Error("no memory", ErrorKind::environment);
                            }),
               Error);
}

}  // namespace
}  // namespace ghostrank
