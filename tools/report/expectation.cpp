// See expectation.h.
#include "tools/report/expectation.h"

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "tools/report/result_json.h"
#include "tools/text/humane.h"

namespace ghostrank {

Expectation parse_expectation(const std::string& text) {
  const std::size_t sign = text.find_first_of("<>");
  if (sign == std::string::npos || sign == 0) {
    throw Error("--expect '" + text + "': write KEY<VALUE or KEY>VALUE, as step_time.median<0.5");
  }
  const std::optional<double> bound = parse_number(text.substr(sign + 1));
  if (!bound) throw Error("--expect '" + text + "': '" + text.substr(sign + 1) + "' is no number");
  Expectation expectation{text.substr(0, sign), text[sign] == '<', *bound};
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
