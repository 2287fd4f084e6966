// See expectation.h.
#include "tools/expectation.h"

#include <cstdlib>

#include "profiles/error.h"
#include "tools/humane.h"
#include "tools/result_json.h"

namespace ghostrank {

Expectation parse_expectation(const std::string& text) {
  const std::size_t sign = text.find_first_of("<>");
  if (sign == std::string::npos || sign == 0) {
    throw Error("--expect '" + text + "': write KEY<VALUE or KEY>VALUE, as step_time.median<0.5");
  }
  Expectation expectation{text.substr(0, sign), text[sign] == '<', 0};
  const std::string bound = text.substr(sign + 1);
  char* end = nullptr;
  expectation.bound = std::strtod(bound.c_str(), &end);
  if (bound.empty() || *end != '\0') {
    throw Error("--expect '" + text + "': '" + bound + "' is no number");
  }
  if (expectation.path == "step_time") expectation.path = "step_time.median";
  if (!is_result_path(expectation.path)) {
    throw Error("--expect: a result has no number '" + expectation.path +
                "'; keys are those of --json, as step_time.median, fidelity.critical_lateness, "
                "traffic.wire_bytes_per_iteration");
  }
  return expectation;
}

std::string missed(const Expectation& expectation, const Result& result) {
  const std::optional<double> value = value_at(result, expectation.path);
  const bool met =
      value && (expectation.below ? *value < expectation.bound : *value > expectation.bound);
  if (met) return "";
  return "expected " + expectation.path + (expectation.below ? " < " : " > ") +
         significant(expectation.bound, 6) + ", got " +
         (value ? significant(*value, 6) : "nothing");
}

}  // namespace ghostrank
