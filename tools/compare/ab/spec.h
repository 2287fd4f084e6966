// What `ghostrank compare JOB` is asked: variants of a job and the conditions on their comparison,
// parsed from the command line.
//
// Errors: Error(usage) that names the flag. Threading: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/compare/ab/statistics.h"

namespace ghostrank {

struct Variant {
  std::string name;
  std::vector<std::string> settings;  // "key=value", as -s takes them
};

// "key=value key=value" or "key=value,key=value" -> its settings. A comma or space inside brackets,
// braces or quotes, or before something that is not KEY=, belongs to the value. `flag` is for
// errors.
std::vector<std::string> parse_settings(const std::string& flag, const std::string& text);

// "NAME:key=value key=value"; nothing after the colon is the job as it is.
Variant parse_variant(const std::string& text);

// Throws unless there are two variants or more, each with a name of its own.
void check_variants(const std::vector<Variant>& variants);

// --until 'ci<1%' or 'ci<0.01': the half-width of every interval, relative to its ratio.
double parse_until(const std::string& text);

// --margin '1%' or 0.01.
double parse_margin(const std::string& text);

// --expect 'b/a<0.6'
struct RatioExpectation {
  std::string text;
  std::size_t of = 0, to = 0;  // variants
  bool below = true;
  double bound = 0;
};
RatioExpectation parse_ratio_expectation(const std::string& text,
                                         const std::vector<Variant>& variants);

}  // namespace ghostrank
