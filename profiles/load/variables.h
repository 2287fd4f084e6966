// The environment variables that ghostrank reads besides those of a job's keys (config.h), and
// those of its tests. Any other variable that begins with GHOSTRANK_ counts as a typing error.
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

// Throws Error(usage) that names an unknown variable and the most similar known one.
void check_variables();

}  // namespace ghostrank
