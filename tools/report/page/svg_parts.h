// What the pictures of a page are made of. Text is escaped, and numbers that are not finite become
// 0, so that the picture stays well-formed whatever it shows.
//
// Units: pixels. Threading: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ghostrank::page {

std::string svg(double width, double height, std::string_view name, const std::string& body);
std::string text(double x, double y, std::string_view anchor, std::string_view words,
                 std::string_view kind = "");
// `tip` is what a reader sees who points at it.
std::string box(double x, double y, double width, double height, std::string_view kind,
                std::string_view tip, double opacity = 1);
std::string dot(double x, double y, double radius, std::string_view kind, std::string_view tip);
std::string line(double x1, double y1, double x2, double y2, std::string_view kind);
std::string pixels(double value);

double width_of(std::string_view words);                       // about; fonts differ
std::string shortened(const std::string& words, int columns);  // "…" for its middle

// About `count` round values from `least` to `most`.
std::vector<double> ticks(double least, double most, int count);

}  // namespace ghostrank::page
