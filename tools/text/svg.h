// Two kinds of picture as self-contained SVG: a square heat map, and curves over common axes.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

namespace ghostrank {

struct SvgHeatMap {
  std::string title, across, down;  // names of the axes
  int size = 0;
  std::vector<double> values;  // row by row; NaN: an empty cell
};
std::string svg_heat_map(const SvgHeatMap& map);

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
};
std::string svg_curves(const SvgCurves& curves);

}  // namespace ghostrank
