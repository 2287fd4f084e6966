// Where the Python hooks of `ghostrank profile capture` lie.
#pragma once

#include <string>

namespace ghostrank {

// For PYTHONPATH. Throws Error(environment) if no profile directory has them.
std::string capture_hooks_folder();

}  // namespace ghostrank
