// Threading: a pure function.
#pragma once

#include <functional>
#include <string>

namespace ghostrank {

// The nearest legal values below and above `wanted`, from 1 to `most`, as "4 or 8"; "" without
// any.
std::string nearest_legal(int wanted, int most, const std::function<bool(int)>& legal);

}  // namespace ghostrank
