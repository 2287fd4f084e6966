// The command on a machine with too little memory: one clear error, whichever thread runs out
// first.
#include <array>
#include <cstdio>
#include <filesystem>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "tests/tools/sample.h"

namespace ghostrank {
namespace {

using test::Scratch;

struct Outcome {
  int status = -1;   // exit status as a shell reports it
  std::string said;  // on stderr
};

Outcome shell(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = popen(("bash -c '" + command + "; exit $?' 2>&1 >/dev/null").c_str(), "r");
  std::array<char, 4096> chunk;
  while (const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), pipe))
    outcome.said.append(chunk.data(), n);
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

const std::string kSmall = GHOSTRANK_TRANSCRIPTS "/small.yaml";
// The main thread, an engine thread or the control thread may be the one whose allocation fails.
TEST(WantOfMemory, IsOneErrorAndStatusThree) {
  int refused = 0;
  for (const int kib : {20'000, 28'000, 36'000, 44'000, 48'000}) {
    const Outcome o = shell("ulimit -v " + std::to_string(kib) + "; " GHOSTRANK_BINARY " run " +
                            kSmall + " -s cluster.nodes=256 --quiet");
    if (o.status == 0) continue;
    if (o.status == 127) continue;  // the program's libraries did not fit
    ++refused;
    EXPECT_EQ(o.status, 3) << kib << ": " << o.said;
    const bool clear = o.said.find("out of memory") != std::string::npos ||
                       o.said.find("cannot be started") != std::string::npos;
    EXPECT_TRUE(clear) << kib << ": " << o.said;
    EXPECT_EQ(o.said.find("terminate"), std::string::npos) << kib << ": " << o.said;
  }
  EXPECT_GE(refused, 3);
}

TEST(AFullDisk, EndsTheKeepingOfIterationsWithAWordAndNotTheRun) {
  const Scratch scratch;
  const std::string json = scratch / "out.json";
  std::filesystem::create_symlink("/dev/full", json + ".partial.jsonl");
  const Outcome o = shell(GHOSTRANK_BINARY " run " + kSmall + " --quiet --json " + json);
  EXPECT_EQ(o.status, 0);
  EXPECT_NE(o.said.find("are no longer kept in"), std::string::npos) << o.said;
  EXPECT_NE(o.said.find("No space left"), std::string::npos) << o.said;
  EXPECT_GT(std::filesystem::file_size(json), 1000u);
}

}  // namespace
}  // namespace ghostrank
