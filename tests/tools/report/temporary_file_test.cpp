#include "tools/report/files/temporary_file.h"

#include <csignal>
#include <filesystem>
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/tools/sample.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

using test::contents;
using test::Scratch;
using test::Variable;
using testing::HasSubstr;

// Sets TMPDIR to a scratch folder.
class TemporaryFiles : public testing::Test {
 protected:
  std::string folder() const { return scratch_ / ""; }

  template <typename F>
  static std::string error_of(F f) {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 3);
      return error.what();
    }
    return "none";
  }

 private:
  Scratch scratch_;
  const Variable tmpdir_{"TMPDIR", folder()};
};

// Limits the size of files of this process, like a full disk.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(TemporaryFiles, HoldTheirLinesWhileTheirOwnerLives) {
  std::string path;
  {
    const TemporaryFile file({"one", "", "three"});
    path = file.path();
    EXPECT_EQ(contents(path), "one\n\nthree\n");
    const TemporaryFolder inner;
    write_lines(inner.file("commands"), {"first", "longer than that"});
    write_lines(inner.file("commands"), {"second"});
    EXPECT_EQ(contents(inner.file("commands")), "second\n");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
}

// Covers lines that do not fit at once, and lines that fail only when the file is closed.
TEST_F(TemporaryFiles, ThatDoNotFitAreAnErrorAndLeaveNothing) {
  for (const std::size_t lines : {std::size_t{10}, std::size_t{100'000}}) {
    std::string why;
    {
      const SmallFiles disk(64);
      why =
          error_of([&] { TemporaryFile(std::vector<std::string>(lines, "an entry of a table")); });
    }
    EXPECT_THAT(why, HasSubstr("the temporary file " + folder() + "ghostrank-"));
    EXPECT_THAT(why, HasSubstr("cannot be written: File too large"));
    EXPECT_TRUE(std::filesystem::is_empty(folder()));
  }
}

TEST_F(TemporaryFiles, NeedAFolder) {
  const Variable nowhere("TMPDIR", folder() + "none");
  EXPECT_THAT(error_of([] { TemporaryFile({"x"}); }), HasSubstr("set TMPDIR"));
  EXPECT_THAT(error_of([] { TemporaryFolder(); }), HasSubstr("set TMPDIR"));
  EXPECT_THAT(error_of([&] { write_lines(folder() + "none/x", {}); }),
              HasSubstr("cannot be written: No such file"));
}

}  // namespace
}  // namespace ghostrank
