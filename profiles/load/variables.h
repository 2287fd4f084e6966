// The environment variables that ghostrank reads beside those of a job's keys (config.h), and those
// of its tests. One that begins with GHOSTRANK_ and is none of them is a slip of the pen.
//
// Threading: reads the environment.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ghostrank {

struct Variable {
  std::string_view name, doc;
};
std::span<const Variable> variables();

// As Markdown, for docs/job-format.md.
std::string variables_markdown();

// Throws Error(usage) that names an unknown variable and the nearest one that is known.
void check_variables();

}  // namespace ghostrank
