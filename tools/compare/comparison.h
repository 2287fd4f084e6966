// Compares results side by side: their measures, and whether their ledgers agree. The first result
// is the baseline for the others.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/result_json.h"
#include "tools/text/table.h"

namespace ghostrank {

enum class Ledgers { same, different, unknown };

// The traffic of two results, pair by pair: payload bytes and messages per iteration.
struct LedgerComparison {
  Ledgers outcome = Ledgers::unknown;
  std::size_t pairs_different = 0;
};
LedgerComparison compare_ledgers(const StoredResult& a, const StoredResult& b);

// One numeric row of the table.
struct Measure {
  std::string name, key;  // for people, for JSON
  std::optional<double> (*of)(const StoredResult&);
  std::string (*text)(double);
};
const std::vector<Measure>& measures();

// A row for each measure and fact; from the second result on with the ratio to the first.
Table comparison_table(const std::vector<StoredResult>& results);
std::string short_name(const StoredResult& result);  // of its file, without folders
std::string comparison_text(const std::vector<StoredResult>& results, const Paint& paint);
std::string comparison_json(const std::vector<StoredResult>& results);  // ghostrank/comparison/1

}  // namespace ghostrank
