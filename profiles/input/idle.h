// Keys that have no effect beside the values of others, from the `beside` columns of their rows.
// Threading: pure.
#pragma once

#include <string>

#include "profiles/input/keys.h"

namespace ghostrank {

// True if the key is given, and not as its default. Keys at their defaults may stand anywhere.
bool is_changed(const Setting& setting);

bool holds(const Beside& condition, const std::string& value);

// " where experts.count is 0": in which case the condition does not hold.
std::string where_idle(const Settings& in, const Beside& condition);
// An error for a key whose condition does not hold: what is wrong, and what to do.
std::string refusal_of_idle(const Settings& in, const Setting& setting, const Beside& condition);

}  // namespace ghostrank
