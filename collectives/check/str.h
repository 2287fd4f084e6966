// Numbers in the texts of failures. Threading: pure function.
#pragma once

#include <concepts>
#include <string>

namespace ghostrank::checking {

std::string str(std::integral auto n) { return std::to_string(n); }

}  // namespace ghostrank::checking
