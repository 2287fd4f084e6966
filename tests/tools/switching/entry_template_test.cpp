// Table entries written for any number of nodes.
#include "tools/switching/entry_template.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/tools/sample.h"

namespace ghostrank {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<NodeInterface> kNodes{{"02:00:00:00:00:0a", "10.0.0.1"},
                                        {"02:00:00:00:00:0b", "10.0.0.2"}};

class EntryTemplate : public testing::Test {
 protected:
  std::vector<std::string> lines(const std::string& text) const {
    std::ofstream(scratch_ / "own.entries") << text;
    return entries_for(scratch_ / "own.entries", kNodes);
  }

 private:
  test::Scratch scratch_;
};

TEST_F(EntryTemplate, RepeatsTheLinesThatSpeakOfANode) {
  EXPECT_THAT(lines("register size 0 {nodes}\n"
                    "to match {mac} action go port {node} of {nodes}  # {what} ever\n"
                    "from match {ip} {ip} action hear\n"),
              ElementsAre("register size 0 2",                                //
                          "to match 0x02000000000a action go port 0 of 2  ",  //
                          "to match 0x02000000000b action go port 1 of 2  ",  //
                          "from match 167772161 167772161 action hear",       //
                          "from match 167772162 167772162 action hear"));
}

TEST_F(EntryTemplate, NamesWhatItDoesNotKnow) {
  for (const char* text : {"a match {rank} action b", "a match {", "\na match {}"}) {
    try {
      lines(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_THAT(error.what(),
                  HasSubstr(std::string("own.entries:") + (*text == '\n' ? "2" : "1")));
      EXPECT_THAT(error.what(), HasSubstr("known are {node}, {mac}, {ip} and {nodes}"));
    }
  }
}

}  // namespace
}  // namespace ghostrank
