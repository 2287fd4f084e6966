// What a program of benchmarks found, and the section of docs/performance.md that it makes of it.
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

// Counters of every repetition, by benchmark ("GhostrankStream/64/2") and counter. Beside a
// benchmark's own ones: "cpu_s", processor seconds of an iteration.
class Found {
 public:
  void add(const std::string& benchmark, const std::string& counter, double value);
  bool empty() const { return values_.empty(); }
  // Of the repetitions: the median, the largest; none where the benchmark did not run, or did not
  // end well.
  std::optional<double> median(const std::string& benchmark, const std::string& counter) const;
  std::optional<double> most(const std::string& benchmark, const std::string& counter) const;
  // The benchmarks of that name, whatever their arguments: those, and the medians.
  std::vector<std::pair<double, double>> curve(const std::string& name,
                                               const std::string& counter) const;

 private:
  const std::vector<double>* find(const std::string& benchmark, const std::string& counter) const;

  std::map<std::string, std::map<std::string, std::vector<double>>> values_;
};

// A figure with so many decimals, "-" where there is none.
std::string figure(std::optional<double> value, int decimals = 0, double unit = 1);
// How many times the second the first is.
std::string ratio(std::optional<double> value, std::optional<double> of);

struct Section {
  std::string markdown;                         // tables, and how they were taken
  std::map<std::string, std::string> pictures;  // by file name in docs/pictures
};

// Every program of benchmarks has one; main() calls it when all have run.
Section section(const Found& found);

}  // namespace ghostrank::bench
