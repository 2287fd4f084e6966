#include "profiles/input/idle.h"

#include "profiles/input/named_text.h"
#include "profiles/input/quantity.h"

namespace ghostrank {

bool is_changed(const Setting& setting) {
  // A number has several texts: 0.0001 is 1e-04.
  const bool is_standard = setting.text == setting.key->standard ||
                           (setting.key->type == KeyType::number &&
                            parse_number(setting.key->standard) == setting.number);
  return setting.given && !is_standard;
}

bool holds(const Beside& condition, const std::string& value) {
  return is_among(condition.values, value) != condition.others;
}

std::string where_idle(const Settings& in, const Beside& condition) {
  const std::string& value = in.text(condition.key);
  return " where " + std::string(condition.key) + " is " +
         (value.empty()    ? "not given"
          : is_text(value) ? "given"
                           : value);
}

std::string refusal_of_idle(const Settings& in, const Setting& setting, const Beside& condition) {
  const std::string other(condition.key);
  return std::string(setting.key->path) + " means nothing" + where_idle(in, condition) +
         "; leave it out, or " +
         (condition.others ? "change " + other
                           : "use " + other + ": " + join(words(condition.values), " or "));
}

}  // namespace ghostrank
