// Comma-separated values as tools and spreadsheets write them: a quoted cell may hold separators,
// line ends and doubled quotes. A byte-order mark is skipped.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

namespace ghostrank {

struct CsvRecord {
  int line = 1;                    // of its first cell, counted from 1
  std::vector<std::string> cells;  // one, empty, for a blank line
};

std::vector<CsvRecord> csv_records(const std::string& text);

// `text` as a cell: in quotes if it needs them.
std::string csv_cell(const std::string& text);

}  // namespace ghostrank
