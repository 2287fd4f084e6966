// The names of background's patterns, and which of them are alike.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "profiles/job/job.h"

namespace ghostrank {

using Pattern = Background::Pattern;

std::string name_of(Pattern pattern);
Pattern pattern_named(std::string_view text);  // requires a pattern's name

// Between ranks and storage nodes; the others are among ranks.
inline bool is_stored(Pattern pattern) {
  return pattern == Pattern::checkpoint || pattern == Pattern::data;
}
// Every rank sends to one other.
inline bool is_one_to_one(Pattern pattern) {
  return pattern == Pattern::permutation || pattern == Pattern::bisection;
}

}  // namespace ghostrank
