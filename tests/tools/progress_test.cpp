#include "tools/watch/progress.h"

#include <gtest/gtest.h>

#include "tests/tools/sample.h"
#include "tools/watch/patience.h"

namespace ghostrank {
namespace {

using test::contents;
using test::Scratch;

std::string played(Progress::Mode mode, int iterations, double seconds_each) {
  const Scratch scratch;
  std::FILE* out = std::fopen((scratch / "log").c_str(), "w");
  {
    Progress progress(out, mode, 1, iterations);
    for (int i = -1; i < iterations; ++i) {
      progress.advanced((i + 2.0) / (iterations + 1), (i + 2) * seconds_each);
      progress.iteration_ended(i, 0.5);
    }
  }
  std::fclose(out);
  return contents(scratch / "log");
}

TEST(Progress, SaysWhereTheRunIsAndWhatIsLeft) {
  EXPECT_EQ(progress_text({2, 5, 1, 0.3124, 0.5, 12}),
            "iteration 3/5  step 312.4 ms   50 %  elapsed 12 s  left 12 s");
  EXPECT_EQ(progress_text({-1, 5, 1, 0, 0, 0}), "warm-up 1/1    0 %  elapsed 100 ms");
}

TEST(Progress, OfAnOpenEndSaysHowWellTheMeanIsKnown) {
  EXPECT_EQ(progress_text({41, 0, 1, 0.3124, 0.25, 12, 0.02, 0.01}),
            "iteration 42  step 312.4 ms  mean ± 2 % of ± 1 %   25 %  elapsed 12 s  left 36 s");
  EXPECT_EQ(progress_text({41, 0, 1, 0.3124, 0.25, 12, 0.02, 0}),
            "iteration 42  step 312.4 ms   25 %  elapsed 12 s  left 36 s");
}

TEST(Progress, InALogAppearsAtMostEveryTenSeconds) {
  const std::string log = played(Progress::Mode::plain, 5, 4);  // iterations end at 4, 8, ... 24 s
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2);
  EXPECT_EQ(log.find('\r'), std::string::npos);
}

TEST(Progress, OnATerminalRepaintsOneLineAndClearsItAtTheEnd) {
  const std::string log = played(Progress::Mode::live, 2, 1);
  EXPECT_EQ(log.find('\n'), std::string::npos);
  EXPECT_NE(log.find("iteration 2/2"), std::string::npos);
  EXPECT_EQ(log.substr(log.size() - 4), "\r\x1b[K");
}

std::string waited(std::chrono::milliseconds first, std::chrono::milliseconds lasts) {
  const Scratch scratch;
  std::FILE* out = std::fopen((scratch / "log").c_str(), "w");
  {
    Patience patience("planning", out, first, std::chrono::milliseconds(5));
    std::this_thread::sleep_for(lasts);
  }
  std::fclose(out);
  return contents(scratch / "log");
}

TEST(Patience, SaysWhatTakesSoLongAndLeavesNothing) {
  using std::chrono::milliseconds;
  const std::string log = waited(milliseconds(1), milliseconds(100));
  EXPECT_NE(log.find("\r\x1b[Kplanning, 0 s, "), std::string::npos) << log;
  EXPECT_NE(log.find("iB of memory"), std::string::npos) << log;
  EXPECT_EQ(log.find('\n'), std::string::npos);
  EXPECT_EQ(log.substr(log.size() - 4), "\r\x1b[K");
  EXPECT_EQ(waited(milliseconds(60'000), milliseconds(1)), "") << "of a short step";
}

TEST(Progress, CountsTheIterationsOfEveryWarmUpAndThoseThatAreMeasured) {
  const Scratch scratch;
  std::FILE* out = std::fopen((scratch / "log").c_str(), "w");
  {
    Progress progress(out, Progress::Mode::live, 1, 5);
    double wall = 0;
    const auto play = [&](int iterations, bool measured) {
      progress.plays(iterations, measured);
      for (int i = 0; i < iterations; ++i) {
        progress.advanced(0.5, ++wall);
        progress.iteration_ended(measured ? i : i - iterations, 0.5);
      }
    };
    play(1, false);
    play(3, false);
    play(7, true);
  }
  std::fclose(out);
  const std::string log = contents(scratch / "log");
  for (const char* part : {"warm-up 1/1", "warm-up 2/3", "warm-up 3/3", "iteration 7/7"})
    EXPECT_NE(log.find(part), std::string::npos) << part;
  EXPECT_EQ(log.find("/5"), std::string::npos);
}

TEST(Progress, IsSilentWhenAskedTo) { EXPECT_EQ(played(Progress::Mode::silent, 3, 20), ""); }

}  // namespace
}  // namespace ghostrank
