// Parts of hand-written .spec programs, put together.
#include "switch/dpdk/expand.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch/dpdk/spec.h"

namespace ghostrank::dpdk {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Expand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("expand." + std::to_string(getpid()));
    fs::create_directories(folder_ / "parts");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string expanded(const std::string& text) const {
    return expand_spec(file("own.spec", text), {(folder_ / "parts").string()});
  }
  // The same without lines that say where the next one is from.
  std::string plain(const std::string& text) const {
    std::istringstream in(expanded(text));
    std::string out;
    for (std::string line; std::getline(in, line);)
      if (!line.starts_with("#line ") && !line.empty()) out += line + '|';
    return out;
  }
  std::string error_of(const std::string& text) const {
    try {
      parse_spec(expanded(text), "own.spec");
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

TEST_F(Expand, PutsPartsNumbersAndValuesInTheirPlaces) {
  file("parts/core.spec", "size {N}\nrepeat 2\nl{i} {N}\nend\n");
  EXPECT_EQ(plain("set N 7\nbefore {\ninclude core.spec\nafter // {N} {M}\n"),
            "before {|size 7|l0 7|l1 7|after // {N} {M}|");
  file("core.spec", "beside\n");
  EXPECT_EQ(plain("include core.spec\nrepeat 0\nnone\nend\n"), "beside|");
}

TEST_F(Expand, CountsARepeatInAnIncludedFileByItself) {
  file("parts/core.spec", "of {i}\nrepeat 2\nl{i}\nend\nafter {i}\n");
  EXPECT_EQ(plain("repeat 2\ninclude core.spec\nstill {i}\nend\n"),
            "of 0|l0|l1|after 0|still 0|of 1|l0|l1|after 1|still 1|");
  EXPECT_THAT(error_of("repeat 2\ninclude core.spec\nend\n{i}\n"), HasSubstr("'{i}' has no value"));
}

TEST_F(Expand, NamesTheLineThatIsWrong) {
  EXPECT_THAT(error_of("\ninclude none.spec\n"),
              HasSubstr("own.spec:2: there is no file 'none.spec'"));
  EXPECT_THAT(error_of("size {N}\n"), HasSubstr("own.spec:1: '{N}' has no value"));
  EXPECT_THAT(error_of("repeat x\nend\n"),
              HasSubstr("own.spec:1: 'x' is not a number from 0 to 256"));
  EXPECT_THAT(error_of("repeat 3\n"), HasSubstr("own.spec:1: there is no 'end'"));
  EXPECT_THAT(error_of("end\n"), HasSubstr("own.spec:1: 'end' without 'repeat'"));
  EXPECT_THAT(error_of("repeat 3\nrepeat 2\nend\nend\n"), HasSubstr("own.spec:2: 'repeat' within"));
  EXPECT_THAT(error_of("set N\n"), HasSubstr("own.spec:1: expected: set NAME VALUE"));
  EXPECT_THAT(error_of("include own.spec\n"), HasSubstr("files include each other"));
}

// What the parser finds wrong has its place in the file that it is from.
TEST_F(Expand, TellsTheParserWhereLinesAreFrom) {
  file("parts/core.spec", "struct s_t {\n\tbit<8> a\n}\nnonsense\n");
  EXPECT_THAT(error_of("// mine\ninclude core.spec\n"), HasSubstr("core.spec:4: 'nonsense'"));
  file("parts/core.spec", "struct s_t {\nrepeat 3\n\tbit<8> a{i}\nend\n}\n");
  EXPECT_THAT(error_of("include core.spec\nnonsense\n"), HasSubstr("own.spec:2: 'nonsense'"));
}

TEST_F(Expand, MakesAProgramOfTheExample) {
  const fs::path root = fs::path(GHOSTRANK_SOURCE_DIR);
  const Spec spec = parse_spec(expand_spec((root / "collectives/examples/slot_max.spec").string(),
                                           {(root / "switch/p4/slots").string()}),
                               "slot_max.spec");
  EXPECT_EQ(spec.registers.size(), 3u + 32u);
  EXPECT_EQ(spec.find_struct("lanes_t")->bytes(), 128u);
  EXPECT_EQ(std::ranges::count(spec.instructions, "jmpgt KEEP31 m.element h.lanes.v31"), 1);
}

}  // namespace
}  // namespace ghostrank::dpdk
