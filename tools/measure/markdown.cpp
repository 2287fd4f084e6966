#include "tools/measure/markdown.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace ghostrank::report {

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

void write_section(const std::string& file, const std::string& name, const std::string& text) {
  std::ifstream in(file);
  std::string all{std::istreambuf_iterator<char>(in), {}};
  const std::string begin = "<!-- " + name + ": begin -->\n", end = "<!-- " + name + ": end -->";
  const std::size_t from = all.find(begin), to = all.find(end);
  if (from == std::string::npos || to == std::string::npos)
    throw std::runtime_error(file + " has no section '" + name + "'");
  all.replace(from + begin.size(), to - from - begin.size(), text);
  std::ofstream out(file);
  out << all;
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

}  // namespace ghostrank::report
