// See svg.h.
#include "tools/text/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tools/text/humane.h"
#include "tools/text/markup.h"
#include "tools/text/table.h"

namespace ghostrank {
namespace {

// Pixels around and inside the plot.
constexpr double kLeft = 70, kTop = 40, kRight = 130, kBottom = 50, kWidth = 520, kHeight = 520;

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

std::string text_at(double x, double y, const std::string& anchor, const std::string& text,
                    const std::string& more = "") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\"" +
         more + ">" + escaped(text) + "</text>\n";
}

std::string rectangle(double x, double y, double width, double height, const std::string& fill,
                      const std::string& title) {
  return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
         "\" height=\"" + number(height) + "\" fill=\"" + fill + "\"><title>" + escaped(title) +
         "</title></rect>\n";
}

// Estimated: fonts differ.
double text_width(const std::string& text, double font_size = 12) {
  return 0.6 * font_size * display_width(text);
}

std::string canvas(double width, double height, const std::string& title) {
  width = std::max(width, kLeft + text_width(title, 15) + 10);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
         "viewBox=\"0 0 " +
         number(width) + " " + number(height) +
         "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"white\"/>\n" +
         text_at(kLeft, kTop - 16, "start", title, " font-size=\"15\"");
}

// Of a plot: the margin on its left, its width, the margin on its right.
struct Across {
  double left = kLeft, width = kWidth, right = kRight;
};

// `beside`: height of what stands on the right of the plot.
std::string opening(const std::string& title, const std::string& across, const std::string& down,
                    const Across& plot = {}, double beside = 0) {
  const double middle = kTop + kHeight / 2;
  return canvas(plot.left + plot.width + plot.right, kTop + std::max(kHeight + kBottom, beside),
                title) +
         text_at(plot.left + plot.width / 2, kTop + kHeight + 40, "middle", across) +
         text_at(18, middle, "middle", down,
                 " transform=\"rotate(-90 18 " + number(middle) + ")\"");
}

double widest(const std::vector<std::string>& texts) {
  double width = 0;
  for (const std::string& text : texts) width = std::max(width, text_width(text));
  return width;
}

// With room for labels between the plot and the name of the axis on its left, and for `names` side
// by side below it: one in the middle of each of so many columns, or, if `ends`, one at each end of
// each.
Across across_for(const std::vector<std::string>& labels, const std::vector<std::string>& names,
                  double columns, bool ends, double right = kRight) {
  constexpr double kTitle = 24, kGap = 6, kBetween = 8;
  const double name = widest(names), over = ends ? name / 2 : 0;
  return {std::max({kLeft, kTitle + widest(labels) + kGap, over}),
          std::max(kWidth, columns * (name + kBetween)), std::max(right, over)};
}

// From pale to dark blue.
std::string colour(double share) {
  const double s = std::clamp(share, 0.0, 1.0);
  std::array<char, 16> text{};
  const auto mixed = [&](double pale, double dark) {
    return static_cast<int>(std::lround(pale + (dark - pale) * s));
  };
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", mixed(247, 8), mixed(251, 48),
                mixed(255, 107));
  return text.data();
}

// 1, 2 or 5 times a power of ten, for about five marks up to `most`.
double tick_of(double most) {
  if (most <= 0) return 1;
  const double raw = most / 5, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= raw) return step * power;
  }
  return 10 * power;
}

// Digits that tell apart what is `step` apart, up to `most`.
int digits_of(double most, double step) {
  constexpr int kLeast = 4, kMost = 15;
  if (!(most > 0) || !(step > 0)) return kLeast;
  const double places = std::floor(std::log10(most)) - std::floor(std::log10(step)) + 1;
  return static_cast<int>(std::clamp<double>(places, kLeast, kMost));
}

constexpr int kMostTicks = 10;  // of which tick_of() makes about five

// Maps a value to its point on an axis, as a share of the axis's length; `ticks` are the values to
// label.
struct Axis {
  SvgScale scale;
  double least = 0, most = 1;
  std::vector<double> ticks;

  double share(double value) const {
    if (scale == SvgScale::from_zero) return value / most;
    return std::log10(value / least) / std::log10(most / least);
  }
};

Axis axis_of(SvgScale scale, const std::vector<double>& values) {
  Axis axis{scale, 0, 1, {}};
  double most = 0;
  for (const double v : values) most = std::max(most, v);
  if (scale == SvgScale::from_zero) {
    const double step = tick_of(most);
    axis.most = std::max(step, std::ceil(most / step) * step);
    for (double v = 0; v <= axis.most * 1.0001; v += step) axis.ticks.push_back(v);
    return axis;
  }
  double least = most;
  for (const double v : values) least = std::min(least, v);
  if (least <= 0) least = most = 1;  // no points
  const double from = std::floor(std::log10(least)),
               to = std::max(from + 1, std::ceil(std::log10(most)));
  axis.least = std::pow(10, from);
  axis.most = std::pow(10, to);
  for (double e = from; e <= to; ++e) axis.ticks.push_back(std::pow(10, e));
  return axis;
}

std::string line(double x1, double y1, double x2, double y2, const std::string& stroke, int width) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
         "\" y2=\"" + number(y2) + "\" stroke=\"" + stroke + "\" stroke-width=\"" +
         std::to_string(width) + "\"/>\n";
}

constexpr double kNode = 11;    // radius
constexpr double kApart = 4;    // between the arrows of two directions
constexpr double kNodeGap = 4;  // between two nodes
constexpr double kHead = 7;     // length of an arrow's head
constexpr int kPanelsAcross = 3;

// From the rim of one node to the rim of the other, beside the arrow of the other direction.
std::string arrow(SvgPoint from, SvgPoint to, const SvgArrow& edge) {
  const double dx = to.x - from.x, dy = to.y - from.y;
  const double length = std::max(1e-9, std::hypot(dx, dy)), ux = dx / length, uy = dy / length;
  const auto at = [&](double along, double aside) {
    return SvgPoint{from.x + ux * along - uy * aside, from.y + uy * along + ux * aside};
  };
  const SvgPoint tail = at(kNode, kApart), tip = at(length - kNode, kApart),
                 neck = at(length - kNode - kHead, kApart),
                 left = at(length - kNode - kHead, kApart - kHead / 2),
                 right = at(length - kNode - kHead, kApart + kHead / 2);
  const auto point = [](SvgPoint p) { return number(p.x) + "," + number(p.y); };
  return "<g><title>" + escaped(edge.what) + "</title><path d=\"M" + point(tail) + " L" +
         point(neck) + "\" stroke=\"#08306b\" stroke-width=\"" +
         number(0.6 + 1.8 * std::clamp(edge.share, 0.0, 1.0)) + "\"/><path d=\"M" + point(tip) +
         " L" + point(left) + " L" + point(right) + " Z\" fill=\"#08306b\"/></g>\n";
}

struct PanelSize {
  double width = kWidth, height = kHeight;
};

// Large enough that no two nodes overlap; wider only, where that suffices.
PanelSize size_of(const SvgGraph& panel) {
  constexpr double kSameRow = 1e-6, kRounding = 1e-6;
  double wide = 2 * kNode + kNodeGap;  // what a node needs
  const double high = wide;
  for (const SvgNode& node : panel.nodes) wide = std::max(wide, text_width(node.name) + kNodeGap);
  const auto least = [&](const auto& of_pair) {
    double all = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < panel.nodes.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const SvgPoint &a = panel.nodes[i].at, &b = panel.nodes[j].at;
        all = std::min(all, of_pair(std::abs(a.x - b.x), std::abs(a.y - b.y)));
      }
    return all;
  };
  const auto nearest = [&](const PanelSize& size) {  // in multiples of what they need
    const double x = size.width / wide, y = size.height / high;
    return std::sqrt(
        least([&](double dx, double dy) { return dx * x * dx * x + dy * y * dy * y; }));
  };
  const double in_row = least([&](double dx, double dy) { return dy < kSameRow ? dx : 1.0; });
  const PanelSize wider{std::max(kWidth, wide / std::max(in_row, kSameRow)), kHeight};
  if (nearest(wider) > 1 - kRounding) return wider;
  const double scale = std::max(1.0, 1 / std::max(nearest({}), kSameRow));
  return {scale * kWidth, scale * kHeight};
}

std::string graph(const SvgGraph& panel, const PanelSize& size, double left, double top) {
  constexpr std::array kFills{"#c6dbef", "#fdd0a2", "#c7e9c0", "#dadaeb", "#fcc5c0", "#d9d9d9"};
  const auto point = [&](const SvgPoint& p) {
    return SvgPoint{left + size.width * p.x, top + size.height * p.y};
  };
  std::string text = text_at(left, top - 24, "start", panel.title);
  for (const SvgArrow& edge : panel.edges)
    text += arrow(point(panel.nodes[edge.from].at), point(panel.nodes[edge.to].at), edge);
  for (const SvgNode& node : panel.nodes) {
    const SvgPoint at = point(node.at);
    text += "<circle cx=\"" + number(at.x) + "\" cy=\"" + number(at.y) + "\" r=\"" + number(kNode) +
            "\" fill=\"" + kFills[node.kind % kFills.size()] + "\" stroke=\"#08306b\"/>\n" +
            text_at(at.x, at.y + 4, "middle", node.name);
  }
  return text;
}

}  // namespace

std::string svg_heat_map(const SvgHeatMap& map) {
  double most = 0, least = 0;
  bool any = false;
  for (const double value : map.values) {
    if (std::isnan(value)) continue;
    most = any ? std::max(most, value) : value;
    least = any ? std::min(least, value) : value;
    any = true;
  }
  std::string text = opening(map.title, map.across, map.down);
  const double cell = kWidth / std::max(1, map.size);
  const int every = std::max(1, (map.size + 15) / 16);  // a label on every so many rows
  for (int r = 0; r < map.size; ++r) {
    const double y = kTop + cell * r;
    if (r % every == 0) {
      text += text_at(kLeft - 6, y + cell / 2 + 4, "end", std::to_string(r));
      text +=
          text_at(kLeft + cell * r + cell / 2, kTop + kHeight + 18, "middle", std::to_string(r));
    }
    for (int c = 0; c < map.size; ++c) {
      const double value = map.values[r * map.size + c];
      if (std::isnan(value)) continue;
      text += rectangle(kLeft + cell * c, y, cell, cell, colour(most > 0 ? value / most : 0),
                        std::to_string(r) + " to " + std::to_string(c) + ": " + significant(value));
    }
  }
  const double x = kLeft + kWidth + 20;
  for (int i = 0; i <= 4; ++i) {  // the scale runs from 0: a slow pair is pale, not invisible
    const double share = 1 - i / 4.0;
    text += rectangle(x, kTop + 24.0 * i, 18, 24, colour(share), significant(most * share));
    text += text_at(x + 26, kTop + 24.0 * i + 16, "start", significant(most * share, 3));
  }
  return text + text_at(x, kTop + 150, "start", "least " + significant(least, 3)) + "</svg>\n";
}

std::string svg_time_map(const SvgTimeMap& map) {
  constexpr double kRow = 12, kAcross = 768, kSteps = 100, kFont = 10;
  std::size_t cells = 1;
  double names = 170;
  for (const std::string& row : map.rows) names = std::max(names, 12 + text_width(row, kFont));
  for (const auto& row : map.shares) cells = std::max(cells, row.size());
  const double cell = kAcross / static_cast<double>(cells),
               bottom = kTop + kRow * static_cast<double>(map.rows.size());
  std::string text = canvas(names + kAcross + kRight, bottom + kBottom, map.title);
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = kTop + kRow * static_cast<double>(r);
    text += text_at(names - 6, y + kRow - 2, "end", map.rows[r], " font-size=\"10\"");
    const std::vector<float>& shares = map.shares[r];
    const auto shade = [&](std::size_t c) {
      return std::lround(std::clamp(double{shares[c]}, 0.0, 1.0) * kSteps);
    };
    for (std::size_t c = 0, next = 0; c < shares.size(); c = next) {  // one shape for equal shades
      while (next < shares.size() && shade(next) == shade(c)) ++next;
      if (shade(c) == 0) continue;
      const double from = static_cast<double>(c), cells_wide = static_cast<double>(next - c);
      text += rectangle(names + cell * from, y, cell * cells_wide, kRow - 1,
                        colour(static_cast<double>(shade(c)) / kSteps),
                        map.rows[r] + ", " + humane_seconds(from * map.cell_seconds) + " to " +
                            humane_seconds((from + cells_wide) * map.cell_seconds) + ": " +
                            humane_percent(static_cast<double>(shade(c)) / kSteps));
    }
  }
  for (int i = 0; i <= 4; ++i) {
    const double share = i / 4.0, x = names + kAcross * share;
    text += line(x, bottom, x, bottom + 5, "#444444", 1);
    text += text_at(x, bottom + 18, "middle",
                    humane_seconds(share * static_cast<double>(cells) * map.cell_seconds));
    const double dark = 1 - share, at = names + kAcross + 20;
    text += rectangle(at, kTop + 24.0 * i, 18, 24, colour(dark), humane_percent(dark));
    text += text_at(at + 26, kTop + 24.0 * i + 16, "start", humane_percent(dark));
  }
  return text + text_at(names + kAcross / 2, bottom + 40, "middle", "time") + "</svg>\n";
}

std::string svg_curves(const SvgCurves& curves) {
  constexpr std::array kColours{"#08306b", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#666666",
                                "#a6761d", "#66a61e", "#e6ab02", "#80b1d3", "#e41a1c", "#b15928"};
  constexpr std::array kDashes{"", "6 3", "2 3"};  // once the colours are used up
  std::vector<double> xs, ys;
  for (const SvgLine& line : curves.lines)
    for (const SvgPoint& p : line.points) xs.push_back(p.x), ys.push_back(p.y);
  const Axis across = axis_of(curves.scale, xs), up = axis_of(curves.scale, ys);
  const auto spaces = static_cast<double>(std::max<std::size_t>(2, curves.marks.size()) - 1);
  const auto y_of = [&](double y) { return kTop + kHeight * (1 - up.share(y)); };
  constexpr double kLegend = 10, kLine = 18;
  double legend = kRight;
  for (const SvgLine& line : curves.lines)
    legend = std::max(legend, 2 * kLegend + text_width(line.name));
  std::vector<std::string> labels;
  for (const double y : up.ticks) labels.push_back(significant(y));
  const Across plot = across_for(labels, curves.marks, spaces, true, legend);
  const auto x_of = [&](double x) {
    return plot.left + plot.width * (curves.marks.empty() ? across.share(x) : x / spaces);
  };
  std::string text = opening(curves.title, curves.across, curves.up, plot,
                             kLine * static_cast<double>(curves.lines.size() + 1));
  text += "<path d=\"M" + number(plot.left) + " " + number(kTop) + " V" + number(kTop + kHeight) +
          " H" + number(plot.left + plot.width) + "\" fill=\"none\" stroke=\"black\"/>\n";
  if (curves.marks.empty())
    for (const double x : across.ticks)
      text += text_at(x_of(x), kTop + kHeight + 18, "middle", significant(x));
  for (std::size_t i = 0; i < curves.marks.size(); ++i)
    text += text_at(x_of(static_cast<double>(i)), kTop + kHeight + 18, "middle", curves.marks[i]);
  for (std::size_t i = 0; i < labels.size(); ++i)
    text += text_at(plot.left - 6, y_of(up.ticks[i]) + 4, "end", labels[i]);
  for (std::size_t i = 0; i < curves.lines.size(); ++i) {
    const SvgLine& line = curves.lines[i];
    const std::string stroke = kColours[i % kColours.size()];
    std::string points;
    for (const SvgPoint& p : line.points)
      points += number(x_of(p.x)) + "," + number(y_of(p.y)) + " ";
    text += "<polyline points=\"" + points + "\" fill=\"none\" stroke=\"" + stroke +
            "\" stroke-width=\"2\" stroke-dasharray=\"" +
            kDashes[i / kColours.size() % kDashes.size()] + "\"/>\n";
    if (!curves.marks.empty())
      for (const SvgPoint& p : line.points)
        text += "<circle cx=\"" + number(x_of(p.x)) + "\" cy=\"" + number(y_of(p.y)) +
                "\" r=\"3\" fill=\"" + stroke + "\"><title>" +
                escaped(line.name + ": " + significant(p.y)) + "</title></circle>\n";
    if (line.name.empty()) continue;
    text += text_at(plot.left + plot.width + kLegend, kTop + 16 + kLine * static_cast<double>(i),
                    "start", line.name, " fill=\"" + stroke + "\"");
  }
  return text + "</svg>\n";
}

std::string svg_dots(const SvgDots& dots) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  const auto span = [&](double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  };
  for (const SvgDotColumn& c : dots.columns) {
    for (const double value : c.values) span(value);
    if (c.low && c.high) span(*c.low), span(*c.high);
  }
  if (least > most) least = most = 0;
  const double margin = most > least ? (most - least) * 0.08 : std::max(std::abs(most) * 0.1, 1e-9);
  least -= margin, most += margin;
  const auto y_of = [&](double y) { return kTop + kHeight * (1 - (y - least) / (most - least)); };
  const double step = tick_of(most - least);
  const double first = std::ceil(least / step);
  std::vector<double> ticks;
  std::vector<std::string> labels, names;
  // By number: a step that is smaller than what y can hold would never end.
  for (int i = 0; i <= kMostTicks && (first + i) * step <= most; ++i)
    ticks.push_back((first + i) * step);
  const int digits = digits_of(std::max(std::abs(least), std::abs(most)), step);
  for (const double tick : ticks) labels.push_back(significant(tick, digits));
  for (const SvgDotColumn& c : dots.columns) names.push_back(c.name);
  const double count = std::max<double>(1, static_cast<double>(dots.columns.size()));
  const Across plot = across_for(labels, names, count, false);
  std::string text = opening(dots.title, "one dot is one run; bar: median, box: 95 % interval",
                             dots.up + (least > 0 ? " (not from 0)" : ""), plot);
  text += line(plot.left, kTop, plot.left, kTop + kHeight, "black", 1);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double y = y_of(ticks[i]);
    text += line(plot.left, y, plot.left + plot.width, y, "#dddddd", 1);
    text += text_at(plot.left - 6, y + 4, "end", labels[i]);
  }
  const double width = plot.width / count;
  for (std::size_t i = 0; i < dots.columns.size(); ++i) {
    const SvgDotColumn& c = dots.columns[i];
    const double middle = plot.left + width * (static_cast<double>(i) + 0.5), half = width * 0.3;
    text += text_at(middle, kTop + kHeight + 18, "middle", c.name);
    if (c.values.empty()) continue;
    if (c.low && c.high) {
      text += rectangle(middle - half, y_of(*c.high), 2 * half, y_of(*c.low) - y_of(*c.high),
                        "#c6dbef", significant(*c.low) + " to " + significant(*c.high));
    }
    text += line(middle - half, y_of(c.median), middle + half, y_of(c.median), "#08306b", 3);
    for (std::size_t k = 0; k < c.values.size(); ++k) {
      // Spread over the width in the order of the runs, so that a drift shows.
      const double x =
          middle +
          half * (2 * (static_cast<double>(k) + 0.5) / static_cast<double>(c.values.size()) - 1);
      text += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y_of(c.values[k])) +
              "\" r=\"4\" fill=\"#d95f02\" fill-opacity=\"0.8\"><title>" +
              significant(c.values[k], 6) + "</title></circle>\n";
    }
  }
  return text + "</svg>\n";
}

std::string svg_graphs(const std::string& title, const std::vector<SvgGraph>& panels) {
  const int count = static_cast<int>(panels.size());
  const int across = std::clamp(count, 1, kPanelsAcross),
            down = std::max(1, (count + kPanelsAcross - 1) / kPanelsAcross);
  PanelSize size;
  std::vector<std::string> titles;
  for (const SvgGraph& panel : panels) {
    const PanelSize own = size_of(panel);
    size = {std::max(size.width, own.width), std::max(size.height, own.height)};
    titles.push_back(panel.title);
  }
  const double wide = std::max(size.width, widest(titles)) + kLeft,
               high = size.height + kTop + kBottom;
  std::string text = canvas(kLeft + across * wide, kTop + down * high, title);
  for (int i = 0; i < count; ++i)
    text += graph(panels[i], size, kLeft + i % kPanelsAcross * wide,
                  kTop + kTop + i / kPanelsAcross * high);
  return text + "</svg>\n";
}

}  // namespace ghostrank
