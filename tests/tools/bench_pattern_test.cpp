// The output of patterns: outliers are named, pictures are well-formed.
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/sample.h"
#include "tools/text/svg.h"
#include "tools/verbs/bench/pattern.h"

namespace ghostrank {
namespace {

PatternReport three_pairs() {
  PatternReport report;
  report.pattern = "pairs";
  report.ranks = 3;
  report.table.columns = {"src", "dst", "GBps", "latency_us"};
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      if (from != to) report.table.rows.push_back({double(from), double(to), 50, 2});
    }
  }
  report.table.rows[3][2] = 20;  // 1 to 2
  report.table.rows[4][3] = 9;   // 2 to 0
  report.phases = 4;
  report.modelled = true;
  return report;
}

// Empty when every element is closed in order and every text is escaped.
std::string what_is_wrong(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = xml.find('<', at)) != std::string::npos;) {
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return "a tag is not closed";
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return "a bare < before " + tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /"));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "unexpected <" + tag + ">";
      open.pop_back();
    } else if (tag[0] != '?' && tag.back() != '/') {
      open.push_back(name);
    }
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "quotes of <" + tag + ">";
    at = end + 1;
  }
  for (std::size_t at = 0; (at = xml.find('&', at)) != std::string::npos; ++at) {
    if (xml.find(';', at) > at + 6) return "a bare &";
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

TEST(BenchPairs, NamesThePairsThatAreWellBelowTheMedian) {
  const std::vector<std::string> remarks = outliers(three_pairs().table);
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_EQ(remarks[0], "outlier 2 to 0: 9 µs, median 2 µs");
  EXPECT_EQ(remarks[1], "outlier 1 to 2: 20 GB/s, median 50 GB/s");
}

TEST(BenchPairs, AreASquareWhereItFitsATerminal) {
  const std::string text = pattern_text(three_pairs(), Paint{});
  EXPECT_NE(text.find("        0   -  50  50\n        1  50   -  20\n        2  50  50   -\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("modelled: virtual time"), std::string::npos);
}

TEST(BenchPairs, AreObjectsInJsonAndLinesInCsv) {
  const auto json = nlohmann::json::parse(pattern_json(three_pairs(), "{}"));
  EXPECT_EQ(json["rows"].size(), 6u);
  EXPECT_EQ(json["rows"][3]["src"], 1.0);
  EXPECT_EQ(json["rows"][3]["dst"], 2.0);
  EXPECT_EQ(json["rows"][3]["GBps"], 20.0);
  const std::string csv = numbers_csv(three_pairs().table);
  EXPECT_EQ(csv.substr(0, csv.find('\n', 24)), "src,dst,GBps,latency_us\n0,1,50,2");
}

// Of a run that was stopped between bandwidth and latency.
TEST(BenchPairs, HaveNoFiguresThatWereNotMeasured) {
  PatternReport report = three_pairs();
  report.table.rows[5][3] = NAN;  // 2 to 1
  report.interrupted = "interrupted on host 0";
  EXPECT_EQ(outliers(report.table).size(), 2u);
  const std::string text = pattern_text(report, Paint{});
  EXPECT_NE(text.find("        2  9  -  -\n"), std::string::npos) << text;
  EXPECT_NE(text.find("latency: least 2 µs, median 2 µs, greatest 9 µs\n"), std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(pattern_json(report, "{}"));
  EXPECT_TRUE(json["rows"][5]["latency_us"].is_null());
  EXPECT_EQ(json["interrupted"], "interrupted on host 0");
  EXPECT_TRUE(numbers_csv(report.table).ends_with("\n2,1,50,\n"));
  for (auto& row : report.table.rows) row[3] = NAN;
  EXPECT_NE(pattern_text(report, Paint{}).find("latency: not measured\n"), std::string::npos);
}

TEST(BenchReport, SaysWhyPhasesWereNotFaithful) {
  PatternReport report;
  report.pattern = "incast";
  Result late;
  late.dilation = 4;
  late.fidelity.reason = "loop busy 93 %";
  late.iterations.resize(2);
  late.messages_per_iteration = 10;
  add_phase(report, late);
  Result good;
  good.dilation = 9;
  good.fidelity.faithful = true;
  add_phase(report, good);
  const std::string text = pattern_text(report, Paint{});
  EXPECT_NE(text.find("sent 20 messages, 0 B; dilation 4 to 9\n"), std::string::npos) << text;
  EXPECT_NE(text.find("NOT faithful: 1 of 2 phases; loop busy 93 %"), std::string::npos) << text;
}

TEST(Spread, OfNothingIsZero) {
  EXPECT_EQ(spread_of({}).middle, 0);
  const Spread s = spread_of({3, 1, 2});
  EXPECT_EQ(s.least, 1);
  EXPECT_EQ(s.middle, 2);
  EXPECT_EQ(s.greatest, 3);
}

TEST(BenchPairs, LeavesOutSquaresThatATerminalWouldWrap) {
  const std::string narrow = pattern_text(three_pairs(), Paint{}, 10);
  EXPECT_EQ(narrow.find("from \\ to"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("bandwidth, GB/s: a square of "), std::string::npos) << narrow;
  EXPECT_NE(pattern_text(three_pairs(), Paint{}, 80).find("from \\ to"), std::string::npos);
}

TEST(Svg, IsWellFormedWhateverTheNamesAre) {
  EXPECT_EQ(what_is_wrong(pattern_svg(three_pairs())), "");
  const std::string curves = svg_curves({"a < b & \"c\"", "x", "y", {{"l>1", {{1, 2}, {3, 4}}}}});
  EXPECT_EQ(what_is_wrong(curves), "");
  EXPECT_NE(curves.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_EQ(what_is_wrong(svg_curves({"nothing", "x", "y", {}})), "");
  EXPECT_NE(what_is_wrong("<svg><g></svg>"), "");
}

TEST(Svg, ReplacesWhatIsNoCharacterOfXml) {
  const std::string curves = svg_curves({"caf\xe9 \x01 \xed\xa0\x80 \xc3\xa9\xc3", "x", "y", {}});
  const std::string no = "\xef\xbf\xbd";
  EXPECT_NE(curves.find(">caf" + no + " " + no + " " + no + no + no + " \xc3\xa9" + no + "<"),
            std::string::npos)
      << curves;
}

// Width and height.
std::pair<double, double> size_of(const std::string& svg) {
  double width = 0, height = 0;
  std::sscanf(svg.c_str() + svg.find("viewBox"), "viewBox=\"0 0 %lf %lf", &width, &height);
  return {width, height};
}

TEST(Svg, HasRoomForWhatStandsBesideThePlot) {
  EXPECT_EQ(size_of(svg_curves({"", "x", "y", {{"short", {{1, 2}}}}})), std::pair(720., 610.));
  SvgCurves many{"", "x", "y", {}};
  for (int i = 0; i < 40; ++i) many.lines.push_back({std::string(60, 'm'), {{1, 2}}});
  const auto [width, height] = size_of(svg_curves(many));
  EXPECT_GT(width, 600 + 60 * 6);
  EXPECT_GT(height, 56 + 39 * 18);
  EXPECT_GT(size_of(svg_curves({std::string(100, 't'), "x", "y", {}})).first, 70 + 100 * 8);

  const std::string map = svg_time_map({"", {std::string(50, 'l')}, 1, {{0.5}}});
  double right_end = 0;
  const std::size_t name = map.rfind("<text", map.find(std::string(50, 'l')));
  std::sscanf(map.c_str() + name, "<text x=\"%lf", &right_end);
  EXPECT_GT(right_end, 50 * 5);
  EXPECT_GT(size_of(map).first, right_end + 768);
}

struct Box {
  std::string text;
  double left, right, top, bottom;
};

// Where a picture's texts stand, by the width that they may have; one turned by 90 degrees is high.
std::vector<Box> texts_of(const std::string& svg) {
  constexpr double kAbove = 0.8, kBelow = 0.2;  // the line that letters stand on, of their size
  std::vector<Box> boxes;
  for (std::size_t from = 0; (from = svg.find("<text", from)) != std::string::npos; ++from) {
    const std::string tag = svg.substr(from, svg.find('>', from) - from);
    const std::size_t begin = from + tag.size() + 1;
    const std::string text = svg.substr(begin, svg.find('<', begin) - begin);
    double x = 0, y = 0;
    std::sscanf(tag.c_str(), "<text x=\"%lf\" y=\"%lf\"", &x, &y);
    const double size = tag.find("font-size=\"15\"") != std::string::npos ? 15 : 12;
    const double wide = 0.6 * size * static_cast<double>(text.size());
    const double before = tag.find("\"middle\"") != std::string::npos ? 0.5
                          : tag.find("\"end\"") != std::string::npos  ? 1
                                                                      : 0;
    if (tag.find("rotate(-90") != std::string::npos)
      boxes.push_back({text, x - kAbove * size, x + kBelow * size, y - wide / 2, y + wide / 2});
    else
      boxes.push_back(
          {text, x - before * wide, x + (1 - before) * wide, y - kAbove * size, y + kBelow * size});
  }
  return boxes;
}

void expect_apart(const std::string& svg) {
  const std::vector<Box> boxes = texts_of(svg);
  const auto [width, height] = size_of(svg);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Box& a = boxes[i];
    EXPECT_TRUE(a.left >= 0 && a.right <= width && a.top >= 0 && a.bottom <= height) << a.text;
    for (std::size_t k = 0; k < i; ++k) {
      const Box& b = boxes[k];
      EXPECT_FALSE(a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
          << a.text << " over " << b.text;
    }
  }
}

TEST(Svg, PrintsNoTextOverAnother) {
  const std::string name(40, 'n');
  SvgDots dots{"runs", "step time, seconds of the emulated cluster", {}};
  SvgCurves curves{"points", "key", "step time, seconds of the emulated cluster", {}};
  for (int i = 0; i < 5; ++i) {
    const double seconds = 1.2345678e-4 + i * 1e-10;
    dots.columns.push_back({name, {seconds}, seconds, {}, {}});
    curves.marks.push_back(name);
    curves.lines.push_back({name, {{0, seconds}, {4, 2 * seconds}}});
  }
  expect_apart(svg_dots(dots));
  expect_apart(svg_curves(curves));
  expect_apart(svg_graphs("", {{std::string(120, 't'), {{{0.5, 0.5}, "leaf", 0}}, {}},
                               {std::string(120, 't'), {{{0.5, 0.5}, "leaf", 0}}, {}}}));
}

// Steps that differ in their eighth digit.
TEST(Svg, LabelsTicksApart) {
  const std::string svg =
      svg_dots({"", "s", {{"a", {0.33333331, 0.33333338}, 0.33333335, {}, {}}}});
  std::set<std::string> labels;
  std::size_t ticks = 0;
  for (const Box& box : texts_of(svg))
    if (box.text.starts_with("0.3333")) labels.insert(box.text), ++ticks;
  EXPECT_GE(ticks, 3u);
  EXPECT_EQ(labels.size(), ticks);
}

TEST(Svg, DrawsNodesApart) {
  SvgGraph row;
  for (int i = 0; i < 64; ++i)
    row.nodes.push_back({{(i + 0.5) / 64, 0.5}, "leaf" + std::to_string(i)});
  const std::string wide = svg_graphs("", {row});
  std::vector<double> at;
  for (std::size_t from = 0; (from = wide.find("<circle cx=\"", from)) != std::string::npos; ++from)
    at.push_back(std::stod(wide.substr(from + 12)));
  ASSERT_EQ(at.size(), 64u);
  for (std::size_t i = 1; i < at.size(); ++i) EXPECT_GT(at[i] - at[i - 1], 6 * 6);
  EXPECT_GT(size_of(wide).first, at.back());
  EXPECT_EQ(size_of(wide).second, 650) << "it need not be higher";
}

TEST(Svg, PutsEveryPowerOfTenOfALogarithmicAxisAtEqualDistances) {
  const std::string curves = svg_curves(
      {"growth", "ranks", "ns", {{"", {{10, 1}, {100, 10}, {1000, 100}}}}, SvgScale::by_tens});
  EXPECT_EQ(what_is_wrong(curves), "");
  EXPECT_NE(curves.find("points=\"70.00,560.00 330.00,300.00 590.00,40.00 \""), std::string::npos)
      << curves;
  EXPECT_EQ(what_is_wrong(svg_curves({"nothing", "x", "y", {}, SvgScale::by_tens})), "");
}

TEST(Svg, PaintsOneCellPerPairAndNoneOnTheDiagonal) {
  const std::string map = pattern_svg(three_pairs());
  std::size_t cells = 0;
  for (std::size_t at = 0; (at = map.find(" to ", at)) != std::string::npos; ++at) ++cells;
  EXPECT_EQ(cells, 6u);
  EXPECT_NE(map.find("1 to 2: 20<"), std::string::npos);
}

}  // namespace
}  // namespace ghostrank
