// Golden transcripts of the command: transcripts/*.txt hold commands and their output.
//
//   $ ghostrank sing
//   ghostrank: there is no verb 'sing'; 'ghostrank --help' lists them
//   [2]
//
// A line "$ ..." runs in the transcripts' folder, where $PACKET_SERVER is the example of a scheme;
// stderr is shown with stdout; "[N]" is an exit status other than 0. In expected lines "{*}" stands
// for any text. GHOSTRANK_UPDATE_TRANSCRIPTS=1 rewrites lines that no longer match in place.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/shell.h"
#include "tests/tools/sample.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool matches(const std::string& actual, const std::string& expected) {
  std::size_t at = 0, from = 0;
  while (true) {
    const std::size_t star = expected.find("{*}", from);
    const std::string part = expected.substr(from, star - from);
    if (star == std::string::npos) {
      return actual.size() >= at + part.size() &&
             actual.compare(actual.size() - part.size(), part.size(), part) == 0 &&
             (from > 0 || actual.size() == part.size());
    }
    const std::size_t found = actual.find(part, at);
    if (found == std::string::npos || (from == 0 && found != 0)) return false;
    at = found + part.size();
    from = star + 3;
  }
}

// Runs a command that sees only PATH of the caller's environment. Returns its output and any "[N]".
Lines run(std::string command) {
  for (std::size_t at = 0; (at = command.find('\'', at)) != std::string::npos; at += 4) {
    command.replace(at, 1, "'\\''");
  }
  const std::string folder = fs::path(GHOSTRANK_BINARY).parent_path();
  const test::Outcome outcome = test::shell(
      "cd '" GHOSTRANK_TRANSCRIPTS "' && env -i PATH='" + folder +
      "':\"$PATH\" PACKET_SERVER='" GHOSTRANK_SERVER_PLUGIN "' sh -c '{ " + command + "; } 2>&1'");
  Lines lines = lines_of(outcome.text);
  if (outcome.status != 0) lines.push_back("[" + std::to_string(outcome.status) + "]");
  return lines;
}

class Transcripts : public testing::TestWithParam<fs::path> {};

TEST_P(Transcripts, AreWhatTheCommandPrints) {
  const Lines golden = lines_of(test::contents(GetParam()));
  std::string rewritten;
  for (std::size_t i = 0; i < golden.size();) {
    rewritten += golden[i] + "\n";
    const std::string& command = golden[i++];
    if (command.rfind("$ ", 0) != 0) continue;  // prose between commands
    Lines expected;
    while (i < golden.size() && !golden[i].empty()) expected.push_back(golden[i++]);
    // Blank lines of the output are written as "~", because a blank line ends the expectation.
    Lines actual = run(command.substr(2));
    std::replace(actual.begin(), actual.end(), std::string(), std::string("~"));
    const auto rest = std::max(actual.size(), expected.size());
    for (std::size_t k = 0; k < rest; ++k) {
      const std::string was = k < expected.size() ? expected[k] : "(nothing)";
      const std::string is = k < actual.size() ? actual[k] : "(nothing)";
      const bool same = matches(is, was);
      EXPECT_TRUE(same) << command << "\n  expected: " << was << "\n  printed:  " << is;
      if (k < actual.size()) rewritten += (same ? was : is) + "\n";
    }
  }
  if (std::getenv("GHOSTRANK_UPDATE_TRANSCRIPTS") != nullptr) test::put(GetParam(), rewritten);
}

std::vector<fs::path> transcripts() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(GHOSTRANK_TRANSCRIPTS)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

INSTANTIATE_TEST_SUITE_P(All, Transcripts, testing::ValuesIn(transcripts()),
                         [](const auto& file) { return file.param.stem().string(); });

TEST(TranscriptPatterns, StandForAnyText) {
  EXPECT_TRUE(matches("wall time 3 s", "wall time {*}"));
  EXPECT_TRUE(matches("a 1 b 2 c", "a {*} b {*} c"));
  EXPECT_FALSE(matches("a 1 b 2 d", "a {*} b {*} c"));
  EXPECT_FALSE(matches("xa 1", "a {*}"));
  EXPECT_FALSE(matches("ab", "a"));
}

}  // namespace
}  // namespace ghostrank
