// Elements of floating-point types as floats, and back: what a scheme computes with.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectives/common/data_type.h"

namespace ghostrank {

inline bool is_float(DataType type) {
  return type == DataType::float32 || type == DataType::bfloat16 || type == DataType::float16;
}
// `content` holds elements of a floating-point type; bytes_of_floats() rounds to nearest even.
std::vector<float> floats_of(DataType type, std::span<const std::byte> content);
std::vector<std::byte> bytes_of_floats(DataType type, std::span<const float> floats);

}  // namespace ghostrank
