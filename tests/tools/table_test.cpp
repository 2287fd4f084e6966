#include "tools/text/table.h"

#include <fcntl.h>
#include <optional>
#include <unistd.h>

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/variable.h"
#include "tests/world_ranks.h"
#include "tools/arguments.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

TEST(Table, AlignsColumnsByCharactersNotBytes) {
  const Table table{{{"name"}, {"time", Align::right}}, {{"a", "9 µs"}, {"long name", "10.5 µs"}}};
  EXPECT_EQ(render(table),
            "name          time\n"
            "a             9 µs\n"
            "long name  10.5 µs\n");
}

// Chinese, Japanese and Korean characters take two columns of a terminal.
TEST(Table, AlignsNamesInWideCharacters) {
  const Table table{{{"name"}, {"n"}}, {{"日本語", "1"}, {"한글 é", "2"}, {"layer", "3"}}};
  EXPECT_EQ(render(table),
            "name    n\n"
            "日本語  1\n"
            "한글 é  2\n"
            "layer   3\n");
}

// Emoji take two columns wherever Unicode has them, other symbols one.
TEST(Table, AlignsNamesWithEmoji) {
  const Table table{{{"name"}, {"n"}},
                    {{"⚡ fast", "1"}, {"✅ ok", "2"}, {"🚀 go", "3"}, {"→ one", "4"}}};
  EXPECT_EQ(render(table),
            "name     n\n"
            "⚡ fast  1\n"
            "✅ ok    2\n"
            "🚀 go    3\n"
            "→ one    4\n");
}

// As file systems of macOS have them.
TEST(Table, AlignsNamesWithMarksOfTheirOwn) {
  const Table table{{{"name"}, {"n"}}, {{"e\u0301te\u0301", "1"}, {"mid", "2"}}};
  EXPECT_EQ(render(table),
            "name  n\n"
            "e\u0301te\u0301   1\n"
            "mid   2\n");
}

TEST(Table, PadsShortRowsAndLeavesNoTrailingBlanks) {
  const Table table{{{"a"}, {"b"}}, {{"x"}, {"y", "z"}}};
  EXPECT_EQ(render(table, 2), "  a  b\n  x\n  y  z\n");
}

// Paint's escape sequences take no columns and stay; those of a cell's text are replaced by "?".
TEST(Table, PaintsWhatIsBadAtTheEndOfARow) {
  Table table{{{"a"}, {"b"}}, {{"x", "same"}, {"y", "differs\x1b"}}, {1}, Paint{true}};
  EXPECT_EQ(render(table), "a  b\nx  same\ny  \x1b[1;31mdiffers?\x1b[0m\n");
  table.paint = {};
  EXPECT_EQ(render(table), "a  b\nx  same\ny  differs?\n");
}

TEST(Table, ListsFactsUnderOneMargin) {
  EXPECT_EQ(render(std::vector<Fact>{{"job", "j"}, {"wall time", "1 s"}}),
            "job        j\nwall time  1 s\n");
}

// A file, a model or a key may have any name.
TEST(Text, ShowsNamesThatCannotCommandTheTerminal) {
  const std::string name =
      "a\x1b[31m\xc2\x9b"
      "b\x7f µ±\n";
  EXPECT_EQ(printable(name), "a?[31m?b? µ±\n");
  EXPECT_EQ(render(std::vector<Fact>{{"job", "\x1b[2J"}}), "job  ?[2J\n");
  EXPECT_EQ(render(Table{{{"model"}}, {{"\r\x1b"}}}), "model\n??\n");
  EXPECT_EQ(Paint{false}.bold("\a"), "?");
  EXPECT_EQ(Paint{true}.bold("\a"), "\x1b[1m?\x1b[0m");
}

// mpirun gives its processes terminals but forwards their output through a pipe.
TEST(Paint, TrustsNoDumbTerminalAndNoneOfMpirun) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  const test::Variable term("TERM", "xterm"), no_color("NO_COLOR", std::nullopt),
      alone("OMPI_COMM_WORLD_SIZE", std::nullopt);
  EXPECT_TRUE(is_terminal(terminal));
  EXPECT_TRUE(is_smart_terminal(terminal));
  EXPECT_TRUE(paint_for(terminal).on);
  {
    const test::Variable dumb("TERM", "dumb");
    EXPECT_TRUE(is_terminal(terminal));
    EXPECT_FALSE(is_smart_terminal(terminal));
    EXPECT_FALSE(paint_for(terminal).on);
  }
  const test::Variable ranks("OMPI_COMM_WORLD_SIZE", "2");
  EXPECT_FALSE(is_terminal(terminal));
  EXPECT_FALSE(paint_for(terminal).on);
  close(terminal);
}

TEST(Paint, LeavesTextAloneWhereThereIsNoTerminal) {
  EXPECT_EQ(Paint{false}.bad("x"), "x");
  EXPECT_EQ(Paint{true}.bold("x"), "\x1b[1mx\x1b[0m");
}

TEST(Humane, SecondsPickTheirUnit) {
  EXPECT_EQ(humane_seconds(0), "0 s");
  EXPECT_EQ(humane_seconds(1.5e-9), "1.5 ns");
  EXPECT_EQ(humane_seconds(0.96e-9), "< 1 ns");
  EXPECT_EQ(humane_seconds(0.3124), "312.4 ms");
  EXPECT_EQ(humane_seconds(0.99999), "1 s");
  EXPECT_EQ(humane_seconds(133.2), "2 min 13 s");
  EXPECT_EQ(humane_seconds(2 * 3600 + 59), "2 h 0 min");
}

TEST(Humane, BytesArePowersOf1024) {
  EXPECT_EQ(humane_bytes(512), "512 B");
  EXPECT_EQ(humane_bytes(1024), "1 KiB");
  EXPECT_EQ(humane_bytes(1.5 * 1024 * 1024 * 1024), "1.5 GiB");
}

TEST(Humane, CountsAreGroupedInThousands) {
  EXPECT_EQ(humane_count(999), "999");
  EXPECT_EQ(humane_count(1234567), "1,234,567");
  EXPECT_EQ(humane_count(-1000), "-1,000");
  EXPECT_EQ(humane_count(12.5), "12.5");
}

TEST(Humane, RatesAreDecimal) { EXPECT_EQ(humane_bits(400e9), "400 Gb/s"); }

TEST(RankLists, AreRangesAndSinglesSortedOnce) {
  EXPECT_EQ(parse_ranks("8-10,0,9", 16), world_ranks({0, 8, 9, 10}));
}

TEST(RankLists, RefuseRanksTheJobDoesNotHave) {
  EXPECT_THROW(parse_ranks("0-16", 16), Error);
  EXPECT_THROW(parse_ranks("x", 16), Error);
  EXPECT_THROW(parse_ranks("3-1", 16), Error);
  EXPECT_THROW(parse_ranks("", 16), Error);
}

}  // namespace
}  // namespace ghostrank
