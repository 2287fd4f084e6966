// Jumps of a program: those that are redirected, and those that must stay.
#include "switch/dpdk/jumps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ghostrank::dpdk {
namespace {

using testing::ElementsAre;

// Shortens a program of these instructions followed by tx.
std::vector<std::string> with_shorter_jumps(const std::vector<std::string>& lines, int jumps) {
  Spec spec;
  spec.instructions = lines;
  spec.instructions.push_back("tx m.port");
  EXPECT_EQ(shorten_jumps(spec), jumps);
  spec.instructions.pop_back();
  return spec.instructions;
}

void expect_left(const std::vector<std::string>& lines) {
  EXPECT_EQ(with_shorter_jumps(lines, 0), lines);
}

TEST(ShortenJumps, TurnAConditionThatGoesAroundABlock) {
  EXPECT_THAT(
      with_shorter_jumps({"jmpeq T m.a 0x1", "jmp E", "T : mov m.b 0x1", "E : mov m.b 0x2"}, 1),
      ElementsAre("jmpneq E m.a 0x1", "T : mov m.b 0x1", "E : mov m.b 0x2"));
  EXPECT_THAT(with_shorter_jumps({"jmpnh T", "jmp E", "T : mov m.b 0x1", "E : mov m.b 0x2"}, 1),
              ElementsAre("jmph E", "T : mov m.b 0x1", "E : mov m.b 0x2"));
}

TEST(ShortenJumps, TurnComparisonsWithNumbers) {
  EXPECT_EQ(with_shorter_jumps(
                {"jmplt T m.a 0x10000", "jmp E", "T : mov m.b 0x1", "E : mov m.b 0x2"}, 1)[0],
            "jmpgt E m.a 65535");
  EXPECT_EQ(
      with_shorter_jumps({"jmpgt T m.a 7", "jmp E", "T : mov m.b 0x1", "E : mov m.b 0x2"}, 1)[0],
      "jmplt E m.a 8");
}

TEST(ShortenJumps, LeaveWhatHasNoOpposite) {
  expect_left({"jmplt T m.a m.c", "jmp E", "T : mov m.b 0x1", "E : mov m.b 0x2"});
  expect_left({"jmplt T m.a 0", "jmp E", "T : mov m.b 0x1", "E : mov m.b 0x2"});
  expect_left({"jmpgt T m.a 0xFFFFFFFFFFFFFFFF", "jmp E", "T : mov m.b 0x1", "E : mov m.b 0x2"});
}

TEST(ShortenJumps, LeaveASecondJumpThatOthersUse) {
  EXPECT_THAT(with_shorter_jumps({"jmpeq S m.c 0x3", "jmpeq T m.a 0x1", "S : jmp E",
                                  "T : mov m.b 0x1", "E : mov m.b 0x2"},
                                 1),
              ElementsAre("jmpeq E m.c 0x3", "jmpeq T m.a 0x1", "S : jmp E", "T : mov m.b 0x1",
                          "E : mov m.b 0x2"));
}

TEST(ShortenJumps, GoWhereAJumpToAJumpGoes) {
  EXPECT_EQ(
      with_shorter_jumps(
          {"jmpeq L m.a 0x1", "mov m.b 0x1", "L : jmp M", "mov m.b 0x2", "M : mov m.b 0x3"}, 1)[0],
      "jmpeq M m.a 0x1");
}

TEST(ShortenJumps, KnowTheAnswerToAQuestionJustAsked) {
  EXPECT_EQ(with_shorter_jumps({"jmpeq L m.a 0x0", "mov m.a 0x1", "L : jmpeq M m.a 0x0",
                                "mov m.b 0x2", "M : mov m.b 0x3"},
                               1)[0],
            "jmpeq M m.a 0x0");
  EXPECT_THAT(with_shorter_jumps({"jmpeq L m.a 0x0", "mov m.a 0x1", "L : jmpneq M m.a 0x0",
                                  "mov m.b 0x2", "M : mov m.b 0x3"},
                                 1),
              ElementsAre("jmpeq BEHIND_L m.a 0x0", "mov m.a 0x1", "L : jmpneq M m.a 0x0",
                          "BEHIND_L : mov m.b 0x2", "M : mov m.b 0x3"));
  EXPECT_EQ(with_shorter_jumps({"jmpeq L m.a 0x1", "mov m.a 0x1", "L : jmpneq M m.a 0x2",
                                "mov m.b 0x2", "M : mov m.b 0x3"},
                               1)[0],
            "jmpeq M m.a 0x1");
}

TEST(ShortenJumps, DoNotGuess) {
  for (const char* question :
       {"L : jmpeq M m.c 0x0", "L : jmpeq M m.a m.c", "L : jmplt M m.a 0x5", "L : jmpeq M m.a 0x7"})
    expect_left({"jmpneq L m.a 0x0", "mov m.b 0x1", question, "mov m.b 0x2", "M : mov m.b 0x3"});
  expect_left(
      {"jmpeq L m.a 0x0", "mov m.b 0x1", "L : mov m.a 0x1", "jmpeq M m.a 0x0", "M : mov m.b 0x3"});
}

TEST(ShortenJumps, EndInALoop) { with_shorter_jumps({"jmp L", "L : jmp M", "M : jmp L"}, 5); }

}  // namespace
}  // namespace ghostrank::dpdk
