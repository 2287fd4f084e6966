// Tables that measuring programs write into documents: the text around them stays.
#include "tools/measure/markdown.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/benchmarks/found.h"

namespace ghostrank {
namespace {

using bench::Found;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;

class Document : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(file_) << "Before.\n<!-- bench a: begin -->\nold\n<!-- bench a: end -->\n"
                            "<!-- bench b: begin -->\nkept\n<!-- bench b: end -->\nAfter.\n";
  }
  void TearDown() override { std::filesystem::remove(file_); }

  std::string text() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }

  const std::string file_ =
      (std::filesystem::temp_directory_path() / ("ghostrank-markdown." + std::to_string(getpid())))
          .string();
};

TEST_F(Document, GetsANewSectionAndKeepsTheRest) {
  report::write_section(file_, "bench a", "much\nlonger than it was\n");
  EXPECT_EQ(text(),
            "Before.\n<!-- bench a: begin -->\nmuch\nlonger than it was\n<!-- bench a: end -->\n"
            "<!-- bench b: begin -->\nkept\n<!-- bench b: end -->\nAfter.\n");
}

TEST_F(Document, WithoutTheSectionIsLeftAloneAndNamed) {
  const std::string before = text();
  EXPECT_THAT([&] { report::write_section(file_, "bench c", "new"); },
              ThrowsMessage<std::runtime_error>(HasSubstr(file_ + " has no section 'bench c'")));
  EXPECT_EQ(text(), before);
}

TEST(MarkdownTable, HasARuleUnderItsHeading) {
  EXPECT_EQ(report::markdown_table({{"what", "figure"}, {"speed", "1"}}),
            "| what | figure |\n| --- | --- |\n| speed | 1 |\n");
}

TEST(FoundFigures, AreMediansOfTheRepetitionsAndDashesWhereNothingRan) {
  Found found;
  for (const double value : {4.0, 100.0, 6.0}) found.add("Stream/64/2", "rate", value);
  EXPECT_EQ(bench::figure(found.median("Stream/64/2", "rate"), 1), "6.0");
  EXPECT_EQ(bench::figure(found.median("Stream/64/2", "rate"), 2, 4), "1.50");
  EXPECT_EQ(bench::figure(found.most("Stream/64/2", "rate")), "100");
  EXPECT_EQ(bench::figure(found.median("Stream/64/2", "other")), "-");
  EXPECT_EQ(bench::figure(found.median("Stream/64", "rate")), "-");
  EXPECT_EQ(bench::ratio(6, 4), "1.50");
  EXPECT_EQ(bench::ratio(60, 4), "15");
  EXPECT_EQ(bench::ratio(6, std::nullopt), "-");
}

TEST(FoundCurve, GoesByTheArgumentAsANumberAndLeavesOthersOut) {
  Found found;
  found.add("Ranks/memory/100", "ns", 2);
  found.add("Ranks/memory/20", "ns", 1);
  found.add("Ranks/memory/20", "ns", 3);
  found.add("Ranks/memory/5/2", "ns", 9);
  found.add("Ranks/virtual/5", "ns", 9);
  EXPECT_THAT(found.curve("Ranks/memory", "ns"), ElementsAre(Pair(20, 2), Pair(100, 2)));
}

}  // namespace
}  // namespace ghostrank
