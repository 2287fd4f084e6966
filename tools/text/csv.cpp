#include "tools/text/csv.h"

#include <algorithm>
#include <string_view>

namespace ghostrank {

std::vector<CsvRecord> csv_records(const std::string& text, CsvComments comments) {
  std::vector<CsvRecord> records;
  bool in_record = false, in_quotes = false;
  int line = 1;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  for (std::size_t i = text.starts_with(kByteOrderMark) ? 3 : 0; i < text.size(); ++i) {
    if (!in_record && comments == CsvComments::skipped && text[i] == '#') {
      i = std::min(text.find('\n', i), text.size());
      ++line;
      continue;
    }
    if (!in_record) records.push_back({line, std::vector<std::string>(1)}), in_record = true;
    std::string& cell = records.back().cells.back();
    const char c = text[i];
    line += c == '\n' ? 1 : 0;
    if (in_quotes && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
      cell += text[++i];
    else if (c == '"')
      in_quotes = !in_quotes;
    else if (!in_quotes && c == ',')
      records.back().cells.emplace_back();
    else if (!in_quotes && c == '\n')
      in_record = false;
    else if (in_quotes || c != '\r')
      cell += c;
  }
  if (in_quotes) records.back().open = true;
  return records;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}

}  // namespace ghostrank
