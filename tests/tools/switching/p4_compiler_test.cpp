// P4 programs are compiled once and cached. A stand-in for p4lang's compiler adds a line to its log
// `compiled` at each compilation. As p4c does, it prints its version on stderr and exits with 1
// after preprocessing (-E), which puts part.p4 of its folder before the source. Its output is the
// -D options and the preprocessed source.
#include "tools/switching/targets/p4_compiler.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/tools/sample.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::Variable;
using testing::HasSubstr;

constexpr const char* kStandIn = R"(#!/bin/sh
here=$(dirname "$0")
[ "$1" != --version ] || exec cat "$here/version" >&2
options=; preprocess=; result=
while [ $# -gt 0 ]; do
  case $1 in
    -E) preprocess=1 ;;
    -o) result=$2; shift ;;
    *.p4) source=$1 ;;
    -D*) options="$options $1" ;;
  esac
  shift
done
if [ -n "$preprocess" ]; then
  cat "$here/part.p4" "$source"
  exit 1
fi
echo "$source" >>"$here/compiled"
! grep -q wrong "$source" || exit 1
{ echo "$options"; cat "$here/part.p4" "$source"; } >"$result"
)";

class P4Compiler : public testing::Test {
 protected:
  P4Compiler() {
    for (const char* name : {"p4c-bm2-ss", "p4c-dpdk"}) {
      write(name, kStandIn);
      fs::permissions(scratch_ / name, fs::perms::owner_all);
    }
    write("version", "Version 1\n");
    write("part.p4", "part\n");
    write("mine.p4", "mine\n");
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(scratch_ / name) << text;
  }
  std::string compiled(int elements = 64) const {
    const std::string result = scratch_ / "result";
    fs::remove(result);
    compile_for_bmv2(scratch_ / "mine.p4", elements, result);
    return contents(result);
  }
  // The number of compilations so far.
  std::ptrdiff_t times() const {
    const std::string lines =
        fs::exists(scratch_ / "compiled") ? contents(scratch_ / "compiled") : "";
    return std::count(lines.begin(), lines.end(), '\n');
  }

  test::Scratch scratch_;
  const Variable path_{"PATH", (scratch_ / "") + ":" + std::getenv("PATH")};
  const Variable cache_{"XDG_CACHE_HOME", scratch_ / "cache"};
};

TEST_F(P4Compiler, CompilesAProgramOnce) {
  const std::string program = " -DELEMENTS=64\npart\nmine\n";
  EXPECT_EQ(compiled(), program);
  EXPECT_EQ(compiled(), program);
  EXPECT_EQ(times(), 1);
  // Only cached programs are left, named by 16 hex digits: no temporary files.
  for (const auto& entry : fs::directory_iterator(scratch_ / "cache/ghostrank/p4"))
    EXPECT_EQ(entry.path().filename().string().size(), 16u) << entry.path();
}

TEST_F(P4Compiler, CompilesAnewWhatIsMadeOfSomethingElse) {
  compiled();
  EXPECT_THAT(compiled(256), HasSubstr("ELEMENTS=256"));
  EXPECT_EQ(times(), 2);
  write("mine.p4", "other\n");
  EXPECT_THAT(compiled(), HasSubstr("other"));
  EXPECT_EQ(times(), 3);
  write("part.p4", "another part\n");
  EXPECT_THAT(compiled(), HasSubstr("another part"));
  EXPECT_EQ(times(), 4);
  write("version", "Version 2\n");
  compiled();
  EXPECT_EQ(times(), 5);
  compile_for_dpdk(scratch_ / "mine.p4", 64, scratch_ / "result");
  EXPECT_EQ(times(), 6);

  write("part.p4", "part\n");
  write("mine.p4", "mine\n");
  write("version", "Version 1\n");
  EXPECT_EQ(compiled(), " -DELEMENTS=64\npart\nmine\n");
  EXPECT_EQ(times(), 6);
}

TEST_F(P4Compiler, CompilesEachTimeWhereNothingCanBeKept) {
  const Variable nowhere("XDG_CACHE_HOME", "/dev/null");
  for (int n = 0; n < 2; ++n) EXPECT_EQ(compiled(), " -DELEMENTS=64\npart\nmine\n");
  EXPECT_EQ(times(), 2);
}

TEST_F(P4Compiler, KeepsProgramsInTheHomeFolderOtherwise) {
  const Variable home("HOME", scratch_ / "home");
  const Variable relative("XDG_CACHE_HOME", "cache");
  compiled();
  compiled();
  EXPECT_EQ(times(), 1);
  EXPECT_FALSE(fs::is_empty(scratch_ / "home/.cache/ghostrank/p4"));
}

TEST_F(P4Compiler, KeepsNothingOfAProgramThatIsRefused) {
  write("mine.p4", "wrong\n");
  for (int n = 0; n < 2; ++n) EXPECT_THROW(compiled(), Error);
  EXPECT_EQ(times(), 2);
  EXPECT_FALSE(fs::exists(scratch_ / "cache"));
}

TEST_F(P4Compiler, TakesNoProgramThatWasCutOff) {
  const std::string program = compiled();
  for (const auto& entry : fs::directory_iterator(scratch_ / "cache/ghostrank/p4"))
    fs::resize_file(entry.path(), 0);
  EXPECT_EQ(compiled(), program);
  EXPECT_EQ(times(), 2);
}

}  // namespace
}  // namespace ghostrank
