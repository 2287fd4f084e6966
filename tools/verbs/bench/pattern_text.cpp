// The text, CSV and pictures of patterns. See bench/pattern.h; the JSON is in bench/json.cpp.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "profiles/median.h"
#include "tools/report/run_report.h"
#include "tools/text/humane.h"
#include "tools/text/svg.h"
#include "tools/verbs/bench/pattern.h"

namespace ghostrank {
namespace {

constexpr int kWidestMatrix = 16;       // ranks whose pairs fit a terminal as a square
constexpr std::size_t kMostNamed = 10;  // outliers

std::string rank_name(double rank) { return std::to_string(static_cast<int>(rank)); }

// Formats a column's number with its unit.
std::string shown(const std::string& column, double value) {
  if (column == "size_bytes") return humane_bytes(value);
  if (column.ends_with("_us")) return humane_seconds(value * 1e-6);
  if (column.ends_with("GBps")) return significant(value) + " GB/s";
  return humane_count(value);
}

std::string title_of(std::string column) {
  for (const char* unit : {"_bytes", "_us", "_GBps"}) {
    if (column.ends_with(unit)) column.resize(column.size() - std::string(unit).size());
  }
  std::replace(column.begin(), column.end(), '_', ' ');
  return column == "GBps" ? "bandwidth" : column;
}

std::string table_text(const NumberTable& numbers) {
  Table table;
  for (const std::string& column : numbers.columns) {
    table.columns.push_back({title_of(column), Align::right});
  }
  for (const auto& row : numbers.rows) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < row.size(); ++i) cells.push_back(shown(numbers.columns[i], row[i]));
    table.rows.push_back(std::move(cells));
  }
  return render(table);
}

// What was measured of a column.
std::vector<double> column(const NumberTable& numbers, std::size_t index) {
  std::vector<double> values;
  for (const auto& row : numbers.rows)
    if (!std::isnan(row[index])) values.push_back(row[index]);
  return values;
}

// One quantity of all pairs as a square: rows send, columns receive.
std::string matrix_text(const PatternReport& report, std::size_t index) {
  Table table{{{"from \\ to", Align::right}}, {}};
  const std::size_t n = report.ranks;
  for (std::size_t r = 0; r < n; ++r) {
    table.columns.push_back({std::to_string(r), Align::right});
    table.rows.push_back(std::vector<std::string>(n + 1, "-"));
    table.rows[r][0] = std::to_string(r);
  }
  for (const auto& row : report.table.rows) {
    if (std::isnan(row[index])) continue;
    table.rows[static_cast<std::size_t>(row[0])][static_cast<std::size_t>(row[1]) + 1] =
        significant(row[index], 3);
  }
  return render(table);
}

std::string spread_text(const PatternReport& report, std::size_t index, const std::string& name) {
  const std::vector<double> measured = column(report.table, index);
  if (measured.empty()) return name + ": not measured\n";
  const Spread s = spread_of(measured);
  const std::string& unit = report.table.columns[index];
  return name + ": least " + shown(unit, s.least) + ", median " + shown(unit, s.middle) +
         ", greatest " + shown(unit, s.greatest) + "\n";
}

// The square under its title, or, if it is wider than `columns`, where to find every pair.
std::string square_text(const PatternReport& report, std::size_t index, const std::string& title,
                        int columns) {
  const std::string square = matrix_text(report, index);
  int width = 0;
  std::istringstream lines(square);
  for (std::string line; std::getline(lines, line);) width = std::max(width, display_width(line));
  if (width <= columns) return title + "\n" + square + "\n";
  return title + ": a square of " + std::to_string(width) +
         " columns; --csv, --json or --svg have every pair\n";
}

std::string pairs_text(const PatternReport& report, int columns) {
  std::string text;
  if (report.ranks <= kWidestMatrix) {
    text += square_text(report, 2, "bandwidth, GB/s", columns) +
            square_text(report, 3, "latency, us", columns);
  } else {
    text += "more than " + std::to_string(kWidestMatrix) +
            " ranks: --csv, --json or --svg have every pair\n";
  }
  return text + spread_text(report, 2, "bandwidth") + spread_text(report, 3, "latency");
}

std::string verdict_of(const PatternReport& report) {
  if (report.phases == 0) return "nothing was measured";
  if (report.modelled) return kModelledVerdict;
  if (report.unfaithful == 0) return kFaithfulVerdict;
  return "NOT faithful: " + std::to_string(report.unfaithful) + " of " +
         std::to_string(report.phases) + " phases; " + report.reason;
}

std::string traffic_text(const PatternReport& report) {
  std::string text =
      "sent " + humane_count(report.messages, "message") + ", " + humane_bytes(report.bytes);
  if (report.modelled) return text + "\n";
  text += "; dilation " + significant(report.least_dilation);
  if (report.greatest_dilation > report.least_dilation) {
    text += " to " + significant(report.greatest_dilation);
  }
  return text + "\n";
}

std::string flows_svg(const PatternReport& report) {
  SvgCurves curves{report.pattern + ": bandwidth of every flow, slowest first", "flow", "GB/s", {}};
  for (const auto& row : report.flows.rows) {
    const std::string name = humane_bytes(row[0]);
    if (curves.lines.empty() || curves.lines.back().name != name)
      curves.lines.push_back({name, {}});
    curves.lines.back().points.push_back({0, row[3]});
  }
  for (SvgLine& line : curves.lines) {
    std::sort(line.points.begin(), line.points.end(),
              [](const SvgPoint& a, const SvgPoint& b) { return a.y < b.y; });
    for (std::size_t i = 0; i < line.points.size(); ++i) {
      line.points[i].x = static_cast<double>(i + 1);
    }
  }
  return svg_curves(curves);
}

}  // namespace

void add_phase(PatternReport& report, const Result& result) {
  report.hosts = result.hosts;
  const bool first = report.phases++ == 0;
  report.modelled = result.fidelity.modelled;
  if (!result.fidelity.faithful && report.unfaithful++ == 0) report.reason = result.fidelity.reason;
  report.least_dilation =
      first ? result.dilation : std::min(report.least_dilation, result.dilation);
  report.greatest_dilation = std::max(report.greatest_dilation, result.dilation);
  const auto iterations = static_cast<double>(result.iterations.size());
  report.messages +=
      (result.messages_per_iteration + result.intra_node_messages_per_iteration) * iterations;
  report.bytes +=
      (result.wire_bytes_per_iteration + result.intra_node_bytes_per_iteration) * iterations;
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const Spread ends{*least, 0, *greatest};
  return {ends.least, median(std::move(values)), ends.greatest};
}

std::vector<std::string> outliers(const NumberTable& pairs) {
  const double rate = spread_of(column(pairs, 2)).middle;
  const double latency = spread_of(column(pairs, 3)).middle;
  struct Named {
    double by;
    std::string text;
  };
  std::vector<Named> found;
  for (const auto& row : pairs.rows) {
    const std::string pair = rank_name(row[0]) + " to " + rank_name(row[1]) + ": ";
    if (rate > 0 && row[2] < rate * (1 - kOutlier)) {
      found.push_back(
          {rate / std::max(row[2], 1e-12),
           pair + significant(row[2]) + " GB/s, median " + significant(rate) + " GB/s"});
    }
    if (latency > 0 && row[3] > latency * (1 + kOutlier)) {
      found.push_back({row[3] / latency, pair + humane_seconds(row[3] * 1e-6) + ", median " +
                                             humane_seconds(latency * 1e-6)});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Named& a, const Named& b) { return a.by > b.by; });
  std::vector<std::string> remarks;
  for (std::size_t i = 0; i < std::min(found.size(), kMostNamed); ++i) {
    remarks.push_back("outlier " + found[i].text);
  }
  if (found.size() > kMostNamed) {
    remarks.push_back("and " + std::to_string(found.size() - kMostNamed) + " outliers more");
  }
  return remarks;
}

std::string pattern_text(const PatternReport& report, const Paint& paint, int columns) {
  std::string text = paint.bold("bench " + report.pattern) + "\n";
  for (const std::string& fact : report.facts) text += fact + "\n";
  text += "\n" +
          (report.pattern == "pairs" ? pairs_text(report, columns) : table_text(report.table)) +
          "\n";
  for (const std::string& remark : report.remarks) text += paint.bad(remark) + "\n";
  const std::string verdict = verdict_of(report);
  return text + traffic_text(report) +
         (report.unfaithful > 0 ? paint.bad(verdict) : paint.good(verdict)) + "\n";
}

std::string numbers_csv(const NumberTable& numbers) {
  std::string text;
  for (const std::string& name : numbers.columns) text += (text.empty() ? "" : ",") + name;
  text += "\n";
  for (const auto& row : numbers.rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      text += (i == 0 ? "" : ",") + (std::isnan(row[i]) ? "" : significant(row[i], 10));
    text += "\n";
  }
  return text;
}

std::string pattern_svg(const PatternReport& report) {
  if (report.pattern == "pairs") {
    SvgHeatMap map{"pairs: bandwidth, GB/s", "to rank", "from rank", report.ranks, {}};
    map.values.assign(report.ranks * report.ranks, std::nan(""));
    for (const auto& row : report.table.rows) {
      map.values[static_cast<std::size_t>(row[0] * report.ranks + row[1])] = row[2];
    }
    return svg_heat_map(map);
  }
  if (report.pattern != "incast") return flows_svg(report);
  SvgCurves curves{"incast: goodput of the receiver", "fan-in", "GB/s", {{"", {}}}};
  for (const auto& row : report.table.rows) curves.lines[0].points.push_back({row[0], row[4]});
  return svg_curves(curves);
}

}  // namespace ghostrank
