#include "profiles/input/csv.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace ghostrank {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string> fields_of(std::string_view line, std::size_t most) {
  std::vector<std::string> fields;
  while (true) {
    const std::size_t comma = fields.size() + 1 < most ? line.find(',') : std::string_view::npos;
    fields.emplace_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(head.fields.begin(), head.fields.end(), name);
  if (found == head.fields.end()) return std::nullopt;
  return static_cast<std::size_t>(found - head.fields.begin());
}

CsvTable parse_csv(std::string_view text, const std::string& path, std::string_view usual_head) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  constexpr std::string_view kByteOrder = "\xef\xbb\xbf";  // spreadsheets write it first
  std::string_view left = text;
  if (left.starts_with(kByteOrder)) left.remove_prefix(kByteOrder.size());
  const auto source = std::make_shared<const Source>(Source{path, path, true});
  CsvTable table;
  table.head.mark = {source, 1, 1};
  for (int number = 1; !left.empty(); ++number) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    const std::string_view line = trimmed(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
    if (line.empty() || line.front() == '#') continue;
    const Mark mark{source, number, 1};
    if (table.head.fields.empty()) {
      table.head = {fields_of(line, kAll), mark};
      const std::vector<std::string> usual = fields_of(usual_head, kAll);
      if (usual_head.empty() ||
          std::any_of(usual.begin(), usual.end(),
                      [&](const std::string& name) { return table.column(name).has_value(); }))
        continue;
      table.head.fields = usual;
    }
    table.rows.push_back({fields_of(line, table.head.fields.size()), mark});
  }
  return table;
}

}  // namespace ghostrank
