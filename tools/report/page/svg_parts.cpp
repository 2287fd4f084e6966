#include "tools/report/page/svg_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "tools/text/markup.h"
#include "tools/text/table.h"

namespace ghostrank::page {
namespace {

std::string attribute(std::string_view name, double value) {
  return " " + std::string(name) + "=\"" + pixels(value) + "\"";
}

std::string kind_of(std::string_view kind) {
  return kind.empty() ? "" : " class=\"" + std::string(kind) + "\"";
}

std::string tipped(const std::string& shape, std::string_view name, std::string_view tip) {
  if (tip.empty()) return shape + "/>\n";
  return shape + "><title>" + escaped(tip) + "</title></" + std::string(name) + ">\n";
}

}  // namespace

std::string pixels(double value) {
  if (!std::isfinite(value)) value = 0;
  value = std::clamp(value, -1e6, 1e6);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  std::string out = text.data();
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string svg(double width, double height, std::string_view name, const std::string& body) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"" + escaped(name) +
         "\" viewBox=\"0 0 " + pixels(width) + " " + pixels(height) + "\"" +
         attribute("width", width) + attribute("height", height) + ">\n" + body + "</svg>\n";
}

std::string text(double x, double y, std::string_view anchor, std::string_view words,
                 std::string_view kind) {
  return "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + std::string(anchor) +
         "\"" + kind_of(kind) + ">" + escaped(words) + "</text>\n";
}

std::string box(double x, double y, double width, double height, std::string_view kind,
                std::string_view tip, double opacity) {
  std::string shape = "<rect" + attribute("x", x) + attribute("y", y) +
                      attribute("width", std::max(0.0, width)) +
                      attribute("height", std::max(0.0, height)) + kind_of(kind);
  if (opacity < 1) shape += attribute("fill-opacity", opacity);
  return tipped(shape, "rect", tip);
}

std::string dot(double x, double y, double radius, std::string_view kind, std::string_view tip) {
  return tipped(
      "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) + kind_of(kind),
      "circle", tip);
}

std::string line(double x1, double y1, double x2, double y2, std::string_view kind) {
  return "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
         attribute("y2", y2) + kind_of(kind) + "/>\n";
}

double width_of(std::string_view words) { return 7.0 * display_width(words); }

std::string shortened(const std::string& words, int columns) {
  if (display_width(words) <= columns) return words;
  // By characters, as cutting one in two would leave what is no UTF-8.
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (begins(words[i])) starts.push_back(i);
  const auto half = static_cast<std::size_t>(std::max(1, columns / 2));
  if (starts.size() <= 2 * half) return words;
  return words.substr(0, starts[half]) + "…" + words.substr(starts[starts.size() - half + 1]);
}

std::vector<double> ticks(double least, double most, int count) {
  if (!(most > least) || !std::isfinite(most - least)) return {};
  const double raw = (most - least) / count, power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double round : {5.0, 2.0, 1.0})
    if (round * power >= raw) step = round * power;
  std::vector<double> values;
  const double first = std::ceil(least / step);
  // By number: adding a step that is smaller than what a value can hold would never end.
  for (int i = 0; i <= 2 * count && (first + i) * step <= most; ++i)
    values.push_back((first + i) * step);
  return values;
}

}  // namespace ghostrank::page
