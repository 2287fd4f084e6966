#include "tools/sweep/grid.h"

#include <algorithm>
#include <set>

#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostPoints = 100'000;

[[noreturn]] void refuse(const std::string& why) { throw Error("--grid: " + why); }

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// The parts between separators that stand outside brackets, braces and quotes.
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0)
      quote = c == quote ? '\0' : quote;
    else if (c == '\'' || c == '"')
      quote = c;
    else if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      --depth;
    if (c == separator && depth == 0 && quote == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (depth != 0 || quote != 0) refuse("'" + text + "' has an open bracket or quote; close it");
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

SweepAxis parse_axis(const std::string& text) {
  const std::size_t sign = text.find('=');
  SweepAxis axis{trimmed(text.substr(0, sign)), {}};
  if (sign == std::string::npos || axis.key.empty())
    refuse("'" + text + "' is no key=value,value; write  cluster.nic.rate=10Gbps,25Gbps");
  axis.values = split(text.substr(sign + 1), ',');
  std::set<std::string> seen;
  for (const std::string& value : axis.values) {
    if (value.empty()) refuse(axis.key + " has an empty value; leave out the comma");
    if (!seen.insert(value).second)
      refuse(axis.key + " has the value " + value + " twice; leave one out");
  }
  return axis;
}

}  // namespace

std::size_t SweepGrid::points() const {
  std::size_t product = 1;
  for (const SweepAxis& axis : axes) product *= axis.values.size();
  return product;
}

std::vector<std::string> SweepGrid::values(std::size_t point) const {
  std::vector<std::string> chosen(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    chosen[a] = axes[a].values[point % axes[a].values.size()];
    point /= axes[a].values.size();
  }
  return chosen;
}

SweepGrid parse_grid(const std::string& text) {
  SweepGrid grid;
  std::set<std::string> keys;
  double points = 1;
  for (const std::string& part : split(text, ';')) {
    if (part.empty()) continue;
    grid.axes.push_back(parse_axis(part));
    const SweepAxis& axis = grid.axes.back();
    if (!keys.insert(axis.key).second) refuse(axis.key + " is named twice; join its values");
    points *= static_cast<double>(axis.values.size());
  }
  if (grid.axes.empty()) refuse("names no key; write  'key=v1,v2;key2=v3,v4'");
  if (points > kMostPoints)
    refuse("has more than " + std::to_string(kMostPoints) + " points; sweep in parts");
  return grid;
}

}  // namespace ghostrank
