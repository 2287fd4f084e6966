// The findings of `ghostrank bench`'s patterns and their forms: text, CSV, JSON, SVG.
//
//   pairs        every ordered pair of ranks: bandwidth, and latency (half of a round trip)
//   permutation  every rank sends to another one, all at once
//   bisection    rank r and rank r + half of the ranks send to each other
//   incast       1, 2, 4, ... ranks answer rank 0 at the same time
//
// Units are in the names of the columns. Threading: pure functions.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "emulator/result/result.h"
#include "tools/text/table.h"

namespace ghostrank {

// A table of numbers with names fit for CSV and JSON. NaN: not measured, empty and null there.
struct NumberTable {
  std::vector<std::string> columns;
  std::vector<std::vector<double>> rows;
};

struct PatternReport {
  std::string pattern;
  int ranks = 0;
  std::vector<std::string> facts;  // above the table
  NumberTable table;               // pairs: one row per pair
  NumberTable flows;               // of permutation and bisection, one row per flow and size
  std::vector<std::string> remarks;
  int phases = 0, unfaithful = 0;
  bool modelled = false;
  std::string reason;  // of the first phase that was not faithful
  double least_dilation = 0, greatest_dilation = 0;
  double messages = 0, bytes = 0;      // all measured phases together
  std::vector<HostReport> hosts = {};  // of the last phase
  std::string interrupted = {};        // why it was stopped; empty: it was not
};

// Counts a phase's fidelity, dilation and traffic.
void add_phase(PatternReport& report, const Result& result);

// Smallest, median, largest.
struct Spread {
  double least = 0, middle = 0, greatest = 0;
};
Spread spread_of(std::vector<double> values);

// Remarks on the pairs (columns src, dst, GBps, latency_us) that are worse than the median by more
// than kOutlier: at most ten, the worst first.
inline constexpr double kOutlier = 0.2;
std::vector<std::string> outliers(const NumberTable& pairs);

// Leaves out squares that are wider than `columns`, and says so.
std::string pattern_text(const PatternReport& report, const Paint& paint,
                         int columns = std::numeric_limits<int>::max());
std::string numbers_csv(const NumberTable& numbers);
std::string pattern_json(const PatternReport& report, const std::string& config_json);
std::string pattern_svg(const PatternReport& report);

}  // namespace ghostrank
