// Comma-separated values as tools and spreadsheets write them: a quoted cell may hold separators,
// line ends and doubled quotes. A byte-order mark is skipped, and so are comments, where the caller
// has them: lines that begin with #, whatever quotes they hold.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ghostrank {

struct CsvRecord {
  int line = 1;                    // of its first cell, counted from 1
  std::vector<std::string> cells;  // one, empty, for a blank line
  bool open = false;               // the text ends within its quotes
};

enum class CsvComments : std::uint8_t { none, skipped };
std::vector<CsvRecord> csv_records(const std::string& text,
                                   CsvComments comments = CsvComments::none);

// `text` as a cell: in quotes if it needs them.
std::string csv_cell(const std::string& text);

}  // namespace ghostrank
