// --expect: a bound on one number of the result, checked after the run. The key is a path of the
// JSON result: 'step_time.median<0.5', 'fidelity.critical_lateness<0.005'.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "emulator/result/result.h"

namespace ghostrank {

struct Expectation {
  std::string path;
  bool below = true;  // '<', else '>'
  double bound = 0;
};

// Throws Error(usage) when the text has another form or the result has no such number.
Expectation parse_expectation(const std::string& text);

// Empty when the result meets the bound, else one line with the bound and the value found.
std::string missed(const Expectation& expectation, const Result& result);

}  // namespace ghostrank
