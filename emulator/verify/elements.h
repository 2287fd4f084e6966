// Elements as ranks hold them in verify mode: values written as elements, and compared with them.
// Sums are in collectives/data_type.h; whole numbers wrap around there, so that sums of some ranks,
// which may be negative, do no harm to that of all.
//
// Units: elements; buffers are aligned for the type. Threading: free functions on the caller's
// buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/data_type.h"
#include "emulator/verify/verify_values.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// Writes values as elements: one each, or one everywhere.
void put_values(DataType type, std::byte* to, const Value* values, std::uint64_t count);
void put_value(DataType type, std::byte* to, Value value, std::uint64_t count);

// Elements as numbers; those of int64 beyond 2^53 are rounded.
std::vector<double> as_numbers(DataType type, const std::byte* elements, std::uint64_t count);

// How many elements differ from others.
std::uint64_t count_different(DataType type, const std::byte* elements, const std::byte* others,
                              std::uint64_t count);

// How many elements differ from their values.
std::uint64_t count_unequal(DataType type, const std::byte* elements, const Value* values,
                            std::uint64_t count);

}  // namespace ghostrank
