// The command with too little memory: one clear error, whichever thread runs out first. With a full
// disk: a warning, and the run goes on.
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/shell.h"
#include "tests/tools/sample.h"

namespace ghostrank {
namespace {

using test::Outcome;
using test::Scratch;
using test::shell;

const std::string kSmall = GHOSTRANK_TRANSCRIPTS "/small.yaml";
// The main thread, an engine thread or the control thread may be the one whose allocation fails.
TEST(WantOfMemory, IsOneErrorAndStatusThree) {
#ifdef GHOSTRANK_SANITIZED
  GTEST_SKIP() << "a sanitizer reserves more address space";
#endif
  int refused = 0;
  for (const int kib : {20'000, 28'000, 36'000, 44'000, 48'000}) {
    const std::string limited =
        "unset GLIBC_TUNABLES; ulimit -v " + std::to_string(kib) + "; " GHOSTRANK_BINARY " ";
    if (shell(limited + "--version").status != 0) continue;  // its libraries do not fit
    const Outcome o = shell(limited + "run " + kSmall + " -s cluster.nodes=256 --quiet");
    if (o.status == 0) continue;
    ++refused;
    EXPECT_EQ(o.status, 3) << kib << ": " << o.text;
    const bool clear = o.text.find("out of memory") != std::string::npos ||
                       o.text.find("cannot be started") != std::string::npos;
    EXPECT_TRUE(clear) << kib << ": " << o.text;
    EXPECT_EQ(o.text.find("terminate"), std::string::npos) << kib << ": " << o.text;
  }
  EXPECT_GE(refused, 3);
}

TEST(AFullDisk, EndsTheKeepingOfIterationsWithAWordAndNotTheRun) {
  const Scratch scratch;
  const std::string json = scratch / "out.json";
  std::filesystem::create_symlink("/dev/full", json + ".partial.jsonl");
  const Outcome o = shell(GHOSTRANK_BINARY " run " + kSmall + " --quiet --json " + json);
  EXPECT_EQ(o.status, 0);
  EXPECT_NE(o.text.find("are no longer kept in"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("No space left"), std::string::npos) << o.text;
  EXPECT_GT(std::filesystem::file_size(json), 1000u);
}

TEST(AFullDisk, EndsTheKeepingOfComparedRunsWithOneWord) {
  const Scratch scratch;
  const std::string json = scratch / "out.json";
  std::filesystem::create_symlink("/dev/full", json + ".partial.jsonl");
  const Outcome o = shell(GHOSTRANK_BINARY " compare " + kSmall +
                          " --quiet -s fabric.kind=virtual -s run.jitter=0.1 --runs 2"
                          " --a run.warmup=1 --b run.warmup=0 --json " +
                          json);
  EXPECT_EQ(o.status, 0) << o.text;
  const std::string word = "ghostrank: runs are no longer kept in " + json +
                           ".partial.jsonl: No space left on device; the comparison goes on\n";
  EXPECT_EQ(o.text, word);
  EXPECT_GT(std::filesystem::file_size(json), 1000u);
}

}  // namespace
}  // namespace ghostrank
