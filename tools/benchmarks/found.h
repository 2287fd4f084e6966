// The values that a program of benchmarks measured, and the section of docs/performance.md that it
// makes of them.
//
// Threading: one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/measure/markdown.h"

namespace ghostrank::bench {

// Counters of every repetition, by benchmark ("GhostrankStream/64/2") and counter. To a benchmark's
// own counters main() adds "cpu_s", processor seconds per iteration.
class Found {
 public:
  void add(const std::string& benchmark, const std::string& counter, double value);
  bool empty() const { return values_.empty(); }
  // Median, least and largest value over the repetitions; empty where the benchmark did not run or
  // failed.
  std::optional<double> median(const std::string& benchmark, const std::string& counter) const;
  std::optional<double> least(const std::string& benchmark, const std::string& counter) const;
  std::optional<double> most(const std::string& benchmark, const std::string& counter) const;
  // For all benchmarks of that name with one numeric argument: the argument and the median, sorted
  // by argument.
  std::vector<std::pair<double, double>> curve(const std::string& name,
                                               const std::string& counter) const;

 private:
  const std::vector<double>* find(const std::string& benchmark, const std::string& counter) const;

  std::map<std::string, std::map<std::string, std::vector<double>>> values_;
};

// `value` / `unit` with `decimals` decimals, "-" where there is no value.
std::string figure(std::optional<double> value, int decimals = 0, double unit = 1);
// `value` / `of` as text, "-" where either is missing.
std::string ratio(std::optional<double> value, std::optional<double> of);

struct Section {
  std::string markdown;  // tables, and the conditions they were measured under
  std::map<std::string, std::string> pictures;  // by file name in docs/pictures
};

// Every program of benchmarks defines it; main() calls it after all benchmarks have run.
Section section(const Found& found);

}  // namespace ghostrank::bench
