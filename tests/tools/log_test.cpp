#include "emulator/common/log.h"

#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/shell.h"
#include "tests/tools/sample.h"

namespace ghostrank {
namespace {

using test::contents;
using test::Outcome;
using test::Scratch;
using testing::HasSubstr;
using testing::Not;

// The first test: those that follow start the log.
TEST(Log, IsOffUntilItIsStarted) {
  EXPECT_FALSE(logs(LogLevel::error));
  log_error("nowhere to go");
}

struct Silence {  // turns the log off for the tests that follow
  ~Silence() { start_log(LogLevel::off, "", 0); }
};

TEST(Log, WritesItsLevelAndThoseAfterItWithTimeAndRank) {
  const Scratch scratch;
  const Silence after;
  start_log(LogLevel::info, scratch / "log", 3);
  log_debug("not this");
  log_info("met ", 7, " processes in ", 0.25, " s");
  log_error("late");
  std::istringstream lines(contents(scratch / "log"));
  std::string line;
  const std::string time = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z process 3 )";
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_TRUE(std::regex_match(line, std::regex(time + R"(info: met 7 processes in 0\.25 s)")))
      << line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_TRUE(std::regex_match(line, std::regex(time + "error: late"))) << line;
  EXPECT_FALSE(std::getline(lines, line)) << line;
}

TEST(Log, WhoseTextHasBracesIsWrittenAsItIs) {
  const Scratch scratch;
  const Silence after;
  start_log(LogLevel::warn, scratch / "log", 0);
  log_warn("hosts: [{name: s1}] {} %v");
  EXPECT_THAT(contents(scratch / "log"), HasSubstr("hosts: [{name: s1}] {} %v\n"));
}

TEST(Log, ThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(start_log(LogLevel::info, "/proc/none/log", 0), Error);
  EXPECT_FALSE(logs(LogLevel::error));
}

// Plays small.yaml in the transcripts' folder; the outcome's text is stderr alone.
Outcome play(const std::string& arguments) {
  const std::string command = "cd '" GHOSTRANK_TRANSCRIPTS "' && " GHOSTRANK_BINARY
                              " run small.yaml " +
                              arguments + " 2>&1 >/dev/null";
  return test::shell(command);
}

TEST(Log, OfARunSaysWhatItDid) {
  const Scratch scratch;
  const Outcome ended = play("-s fabric.kind=memory -q --allow-unfaithful --log-file " +
                             (scratch / "log") + " --json " + (scratch / "result.json"));
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.text, "");
  const std::string log = contents(scratch / "log");
  for (const char* said :
       {"job small.yaml", "engine threads (", "assembled in ", "segment 1 begins", "warm-up of ",
        "segment 2 ends: 1 of 1 reports", "measured ", "/result.json\n"})
    EXPECT_THAT(log, HasSubstr(said));
  EXPECT_THAT(log, Not(HasSubstr("debug:")));
}

TEST(Log, GoesToStderrWhereItsLevelIsGivenAlone) {
  const Outcome ended = play("-q --allow-unfaithful --log-level debug");
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.text, HasSubstr("process 0 info: segment 1 begins"));
  EXPECT_THAT(ended.text, HasSubstr("process 0 debug: iteration 0: "));
  EXPECT_EQ(play("-q --allow-unfaithful --log-level off").text, "");
}

}  // namespace
}  // namespace ghostrank
