#include "tests/fidelity/report.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace ghostrank::fidelity {
namespace {

template <typename... Values>
std::string format(const char* how, Values... values) {
  char text[128];
  std::snprintf(text, sizeof text, how, values...);
  return text;
}

}  // namespace

std::string markdown_line(const Row& row) {
  std::string text;
  for (const std::string& cell : row) text += "| " + cell + " ";
  return text + "|\n";
}

std::string markdown_table(const std::vector<Row>& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += markdown_line(rows[i]);
    if (i == 0) text += markdown_line(Row(rows[0].size(), "---"));
  }
  return text;
}

std::string milliseconds(double seconds) {
  return format(seconds < 0.1 ? "%.2f ms" : "%.1f ms", seconds * 1e3);
}
std::string percent(double share) { return format("%+.2f %%", share * 100); }
std::string megabits(double bits_per_second) {
  return format("%.0f Mbit/s", bits_per_second * 1e-6);
}

double hold(Findings& findings, const std::string& what, double ours, double theirs, double most) {
  const double distance = ours / theirs - 1;
  if (!(std::abs(distance) <= most))
    findings.misses.push_back(what + ": " + percent(distance) + ", at most " +
                              format("%.0f %%", most * 100) + " is wanted");
  return distance;
}

void hold_bytes(Findings& findings, const std::string& what, const Bytes& ours,
                const Bytes& theirs) {
  Bytes all = theirs;
  for (const auto& [pair, bytes] : ours) all[pair] -= bytes;
  for (const auto& [pair, more] : all) {
    if (more == 0) continue;
    findings.misses.push_back(what + ": the real one has " + format("%+.0f", more) +
                              " bytes from " + std::to_string(pair.first) + " to " +
                              std::to_string(pair.second));
  }
}

void write_section(const std::string& file, const std::string& name, const std::string& text) {
  std::ifstream in(file);
  std::string all{std::istreambuf_iterator<char>(in), {}};
  const std::string begin = "<!-- fidelity " + name + ": begin -->\n",
                    end = "<!-- fidelity " + name + ": end -->";
  const std::size_t from = all.find(begin), to = all.find(end);
  if (from == std::string::npos || to == std::string::npos)
    throw std::runtime_error(file + " has no section '" + name + "'");
  all.replace(from + begin.size(), to - from - begin.size(), text);
  std::ofstream(file) << all;
}

}  // namespace ghostrank::fidelity
