// Elements as ranks hold them in verify mode: loops over many of one type.
//
// Units: elements; buffers are aligned for the type. Threading: free functions on the caller's
// buffers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/verify_values.h"
#include "profiles/program.h"

namespace ghostrank {

// into[i] += from[i]. Whole numbers wrap around, bfloat16 is rounded to nearest even.
void add_elements(DataType type, std::byte* into, const std::byte* from, std::uint64_t count);

// Writes values as elements: one each, or one everywhere.
void put_values(DataType type, std::byte* to, const Value* values, std::uint64_t count);
void put_value(DataType type, std::byte* to, Value value, std::uint64_t count);

// How many elements differ from their values.
std::uint64_t count_unequal(DataType type, const std::byte* elements, const Value* values,
                            std::uint64_t count);

}  // namespace ghostrank
