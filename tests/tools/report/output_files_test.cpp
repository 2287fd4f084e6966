#include "tools/report/files/output_files.h"

#include <fcntl.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "profiles/input/input_file.h"
#include "profiles/input/yaml.h"
#include "profiles/trace/readers/import.h"
#include "tests/profiles/support.h"
#include "tests/shell.h"
#include "tests/tools/sample.h"
#include "tools/verbs/calibrate/calibrate.h"

namespace ghostrank {
namespace {

using test::contents;
using test::put;
using test::Scratch;

int exit_code_of(const std::vector<Output>& outputs) {
  try {
    check_outputs(outputs);
  } catch (const Error& error) {
    return error.exit_code();
  }
  return 0;
}

TEST(WholeFiles, ReplaceWhatWasThereAndLeaveNothingBehind) {
  const Scratch scratch;
  write_whole(scratch / "out", "first");
  write_whole(scratch / "out", "second");
  EXPECT_EQ(contents(scratch / "out"), "second");
  EXPECT_FALSE(std::filesystem::exists(scratch / "out.unfinished"));
  EXPECT_THROW(write_whole(scratch / "no/such/place", ""), Error);
}

TEST(WholeFiles, TouchNothingElse) {
  const Scratch scratch;
  put(scratch / "out.unfinished", "somebody's");
  put(scratch / "target", "old");
  std::filesystem::create_symlink(scratch / "target", scratch / "link");
  EXPECT_EQ(exit_code_of({{"--json", scratch / "out"}}), 0);
  write_whole(scratch / "out", "new");
  write_whole(scratch / "link", "new");
  EXPECT_EQ(contents(scratch / "out.unfinished"), "somebody's");
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link"));
  EXPECT_EQ(contents(scratch / "target"), "new");
}

TEST(WholeFiles, AreWrittenWhereALinkToNothingPoints) {
  const Scratch scratch;
  std::filesystem::create_symlink("target", scratch / "link");
  write_whole(scratch / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link"));
  EXPECT_EQ(contents(scratch / "target"), "new");
}

// Under its own name, by a hard link or by a symbolic link.
TEST(WholeFiles, NeverReplaceAnInput) {
  const Scratch scratch;
  put(scratch / "job", "schema");
  read_input(scratch / "job");
  std::filesystem::create_hard_link(scratch / "job", scratch / "same");
  std::filesystem::create_symlink(scratch / "job", scratch / "link");
  for (const char* name : {"job", "same", "link"}) {
    EXPECT_EQ(exit_code_of({{"--json", scratch / name}}), 2) << name;
    EXPECT_THROW(write_whole(scratch / name, "result"), Error) << name;
  }
  EXPECT_EQ(contents(scratch / "job"), "schema");
  EXPECT_EQ(exit_code_of({{"--json", scratch / "other"}}), 0);
}

TEST(WholeFiles, NeverReplaceATrace) {
  const Scratch scratch;
  const std::string layers = "layer_index,numel,forward_pass_ns,backward_pass_ns\n0,10,1000,2000\n";
  put(scratch / "net.csv", layers);
  put(scratch / "kernels.json", layers);
  import_trace({scratch / "net.csv"}, "", 0);
  EXPECT_THROW(write_whole(scratch / "net.csv", "profile"), Error);
  const std::string kernels = scratch / "kernels.json";
  EXPECT_THAT(test::error_of([&] {
                calibrate_device({"ghostrank", "device", "--kineto", kernels, "-o", kernels});
              }),
              testing::HasSubstr("it is an input of this command"));
  EXPECT_EQ(contents(scratch / "net.csv"), layers);
  EXPECT_EQ(contents(kernels), layers);
}

TEST(WholeFiles, WriteToADeviceWithoutReplacingIt) {
  write_whole("/dev/null", "x");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(WholeFiles, FailOnAFullDevice) { EXPECT_THROW(write_whole("/dev/full", "x"), Error); }

// As /dev/stdout is, where a shell has opened a file for stdout.
TEST(WholeFiles, GoToADescriptorThatAFileIsOpenOn) {
  const Scratch scratch;
  put(scratch / "out", "earlier\n");
  const Fd out(open((scratch / "out").c_str(), O_WRONLY | O_APPEND));
  const Fd in(open((scratch / "out").c_str(), O_RDONLY));
  std::filesystem::create_symlink("/dev/fd/" + std::to_string(out.get()), scratch / "link");
  std::filesystem::create_symlink("link", scratch / "further");
  EXPECT_TRUE(is_in_place(scratch / "further"));
  write_whole(scratch / "further", "first\n");
  EXPECT_EQ(write(out.get(), "own\n", 4), 4);
  write_whole(scratch / "link", "second\n");
  EXPECT_EQ(contents(scratch / "out"), "earlier\nfirst\nown\nsecond\n");
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link"));
  EXPECT_EQ(exit_code_of({{"--json", scratch / "link"}, {"--csv", scratch / "further"}}), 0);
  EXPECT_EQ(exit_code_of({{"--json", scratch / "link"}, {"--csv", scratch / "out"}}), 2);
  EXPECT_EQ(exit_code_of({{"--json", "/dev/fd/" + std::to_string(in.get())}}), 3);
}

TEST(WholeFiles, NamedAsStdoutStandBeforeWhatIsPrintedThere) {
  const Scratch scratch;
  const std::string job = GHOSTRANK_TRANSCRIPTS "/small.yaml", out = scratch / "out";
  put(out, "earlier\n");
  const std::string run = GHOSTRANK_BINARY " run " + job + " -s fabric.kind=virtual ";
  EXPECT_EQ(test::shell(run + "--csv /dev/stdout >> " + out).status, 0);
  EXPECT_EQ(test::shell(run + "--quiet --json /dev/stdout >> " + out).status, 0);
  const std::string text = contents(out);
  EXPECT_EQ(text.find("earlier\njob,"), 0u) << text;
  const std::size_t json = text.find("\n{");
  EXPECT_LT(text.find("\nmodelled: "), json) << text;
  EXPECT_NE(text.find("ghostrank/result/1", json), std::string::npos) << text;
}

TEST(OutputFiles, AreCheckedWithoutTouchingThem) {
  const Scratch scratch;
  put(scratch / "old", "kept");
  EXPECT_EQ(exit_code_of({{"--json", scratch / "old"}, {"--csv", scratch / "new"}, {"--svg", ""}}),
            0);
  EXPECT_EQ(contents(scratch / "old"), "kept");
  EXPECT_FALSE(std::filesystem::exists(scratch / "new"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "new.unfinished"));
}

TEST(OutputFiles, AreRefusedWhereNothingCanBeWritten) {
  const Scratch scratch;
  EXPECT_EQ(exit_code_of({{"--json", scratch / "no/such/place"}}), 3);
  EXPECT_EQ(exit_code_of({{"--json", scratch / ""}}), 3);
}

TEST(OutputFiles, AreRefusedWhereOneWouldReplaceTheOther) {
  const Scratch scratch;
  EXPECT_EQ(exit_code_of({{"--json", scratch / "out"}, {"--csv", scratch / "./out"}}), 2);
  EXPECT_EQ(exit_code_of({{"--json", "-"}, {"--csv", "-"}}), 2);
  EXPECT_EQ(exit_code_of({{"--json", "/dev/null"}, {"--csv", "/dev/null"}}), 0);
}

TEST(OutputFiles, AreRefusedWhereALinkMakesThemOne) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "folder");
  std::filesystem::create_directory_symlink("folder", scratch / "same");
  std::filesystem::create_symlink("out", scratch / "link");
  std::filesystem::create_symlink("link", scratch / "further");
  const auto both = [&](const std::string& a, const std::string& b) {
    return exit_code_of({{"--json", scratch / a}, {"--csv", scratch / b}});
  };
  EXPECT_EQ(both("folder/out", "same/out"), 2);
  for (const bool exists : {false, true}) {
    if (exists) put(scratch / "out", "old");
    EXPECT_EQ(both("out", "link"), 2);
    EXPECT_EQ(both("link", "further"), 2);
    EXPECT_EQ(both("out", "folder/out"), 0);
  }
}

TEST(OutputFiles, AreAllWrittenThoughOneFails) {
  const Scratch scratch;
  const auto text = [] { return std::string("text"); };
  const std::string bad = scratch / "no/such/place";
  EXPECT_EQ(write_each(std::vector<TextFile>{{bad, text}, {"", text}, {scratch / "good", text}}),
            3);
  EXPECT_EQ(contents(scratch / "good"), "text");
}

}  // namespace
}  // namespace ghostrank
