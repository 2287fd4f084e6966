// Pictures as self-contained SVG: a square heat map, a heat map over time, curves over common axes,
// columns of dots, and graphs with arrows.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ghostrank {

struct SvgHeatMap {
  std::string title, across, down;  // names of the axes
  int size = 0;
  std::vector<double> values;  // row by row; NaN: an empty cell
};
std::string svg_heat_map(const SvgHeatMap& map);

// Shares of time, by row: each value covers `cell_seconds`. A share above 1 is as dark as 1.
struct SvgTimeMap {
  std::string title;
  std::vector<std::string> rows;
  double cell_seconds = 1;
  std::vector<std::vector<float>> shares;  // by row
};
std::string svg_time_map(const SvgTimeMap& map);

struct SvgPoint {
  double x = 0, y = 0;
};
struct SvgLine {
  std::string name;  // empty: no legend
  std::vector<SvgPoint> points;
};
enum class SvgScale { from_zero, by_tens };  // by_tens: logarithmic, points above 0 only
struct SvgCurves {
  std::string title, across, up;
  std::vector<SvgLine> lines;
  SvgScale scale = SvgScale::from_zero;  // of both axes
  // Not empty: x counts these names, evenly spaced, and points have dots.
  std::vector<std::string> marks = {};
};
std::string svg_curves(const SvgCurves& curves);

// A column of dots for each sample, with its median and an interval around that.
struct SvgDotColumn {
  std::string name;
  std::vector<double> values;
  double median = 0;
  std::optional<double> low, high;
};
struct SvgDots {
  std::string title, up;  // name of the axis; it spans the values and need not begin at 0
  std::vector<SvgDotColumn> columns;
};
std::string svg_dots(const SvgDots& dots);

// Nodes with arrows between them, in panels side by side.
struct SvgNode {
  SvgPoint at;  // from 0 to 1, y downwards
  std::string name;
  int kind = 0;  // nodes of one kind have one colour
};
struct SvgArrow {
  int from = 0, to = 0;
  double share = 1;  // of the widest arrow's width
  std::string what;  // the arrow's tooltip
};
struct SvgGraph {
  std::string title;
  std::vector<SvgNode> nodes;
  std::vector<SvgArrow> edges;
};
std::string svg_graphs(const std::string& title, const std::vector<SvgGraph>& panels);

}  // namespace ghostrank
