// A sweep as a table and as a picture: a line for each combination of the first axes, over the last
// one.
#include <algorithm>

#include "tools/sweep/rows.h"
#include "tools/text/humane.h"
#include "tools/text/svg.h"
#include "tools/text/table.h"

namespace ghostrank {
namespace {

// The grid seen as lines over its last axis.
struct View {
  explicit View(const Sweep& s) : sweep(s), across(s.grid.axes.back()) {
    for (const SweepRow& row : s.rows)
      if (row.good() && !row.samples_per_second) samples = false;
  }

  std::size_t lines() const { return sweep.rows.size() / across.values.size(); }
  const SweepRow& row(std::size_t line, std::size_t column) const {
    return sweep.rows[line * across.values.size() + column];
  }
  std::string name(std::size_t line) const {
    const std::vector<std::string> values = sweep.grid.values(line * across.values.size());
    std::string text;
    for (std::size_t a = 0; a + 1 < values.size(); ++a) text += (a > 0 ? " " : "") + values[a];
    return text;
  }
  std::string keys() const {
    std::string text;
    for (std::size_t a = 0; a + 1 < sweep.grid.axes.size(); ++a)
      text += (a > 0 ? " " : "") + sweep.grid.axes[a].key;
    return text;
  }
  double value(const SweepRow& row) const {
    return samples ? row.samples_per_second.value_or(0) : row.step_seconds;
  }
  std::string what() const { return samples ? "samples/s" : "step time"; }
  std::string cell(const SweepRow& row) const {
    if (!row.played) return "-";
    if (!row.error.empty()) return "error";
    return samples ? significant(value(row)) : humane_seconds(row.step_seconds);
  }

  const Sweep& sweep;
  const SweepAxis& across;
  bool samples = true;  // false: some points count no samples, and step times are shown
};

// A sweep over one key: its values downwards, with more figures of each.
std::string one_axis(const Sweep& sweep, const View& view) {
  Table table{{{view.across.key},
               {"step time", Align::right},
               {"wire bytes", Align::right},
               {"exposed comm", Align::right},
               {"samples/s", Align::right}},
              {}};
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const SweepRow& row = sweep.rows[i];
    std::vector<std::string> cells{view.across.values[i]};
    if (row.good())
      cells.insert(cells.end(),
                   {humane_seconds(row.step_seconds), humane_bytes(row.wire_bytes),
                    humane_seconds(row.exposed_seconds),
                    row.samples_per_second ? significant(*row.samples_per_second) : "-"});
    else
      cells.emplace_back(row.played ? "error" : "-");
    table.rows.push_back(std::move(cells));
  }
  return render(table);
}

}  // namespace

std::string sweep_text(const Sweep& sweep) {
  const View view(sweep);
  if (sweep.grid.axes.size() == 1) return one_axis(sweep, view);
  Table table{{{view.keys()}}, {}};
  for (const std::string& value : view.across.values)
    table.columns.push_back({value, Align::right});
  for (std::size_t line = 0; line < view.lines(); ++line) {
    std::vector<std::string> cells{view.name(line)};
    for (std::size_t column = 0; column < view.across.values.size(); ++column)
      cells.push_back(view.cell(view.row(line, column)));
    table.rows.push_back(std::move(cells));
  }
  return view.what() + " by " + view.keys() + " and " + view.across.key + "\n\n" + render(table);
}

std::string sweep_svg(const Sweep& sweep) {
  const View view(sweep);
  SvgCurves curves{sweep.job + ": " + view.what(),
                   view.across.key,
                   view.samples ? "samples/s" : "step time, seconds of the emulated cluster",
                   {}};
  curves.marks = view.across.values;
  for (std::size_t line = 0; line < view.lines(); ++line) {
    SvgLine drawn{view.name(line), {}};
    for (std::size_t column = 0; column < view.across.values.size(); ++column) {
      const SweepRow& row = view.row(line, column);
      if (row.good()) drawn.points.push_back({static_cast<double>(column), view.value(row)});
    }
    curves.lines.push_back(std::move(drawn));
  }
  return svg_curves(curves);
}

}  // namespace ghostrank
