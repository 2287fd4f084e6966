// Tables in CSV files: a head that names the columns, then rows. Quotes have no meaning; the last
// field of a row takes the rest of its line, commas included. Empty lines and those that begin with
// # do not count.
//
// Errors: Error(usage) "FILE:LINE:1: what; what to do". Threading: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/input/yaml.h"

namespace ghostrank {

struct CsvRow {
  std::vector<std::string> fields;  // as many as the head has, or fewer
  Mark mark;
};

struct CsvTable {
  CsvRow head;
  std::vector<CsvRow> rows;

  std::optional<std::size_t> column(std::string_view name) const;
};

// `path` names the file in messages. `usual_head`: the columns of files that have no head, because
// their first line names none of these columns; empty: a head is needed.
CsvTable parse_csv(std::string_view text, const std::string& path,
                   std::string_view usual_head = "");

}  // namespace ghostrank
